"""Constant folding: nodes that depend on constants or static shapes alone are computed once.

Results and work are of reasonable size, which is estimated before anything is computed. A few bytes of a model can ask
for terabytes: an Expand to any shape, a chain of Concats that each double, a product over all indices of an Einsum.
Such a node is left alone: it is then a task like any other, or an error where it is lowered.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from dfcompile.errors import UserError
from dfcompile.frontend.element_kind import NARROW_REALS, POWERS_OF_TWO, element_kind
from dfcompile.frontend.normaliser.empty_values import without_empty_values
from dfcompile.frontend.onnx.draft import Constant, Constants, Draft, integer, integers, read_only
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.reference_evaluation import alone, evaluate
from dfcompile.frontend.onnx.shapes import TensorType, Types, infer_types

# Nodes whose result may be far larger than their operands; without a known shape they are left alone.
GROWING = frozenset(["CenterCropPad", "ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile"])
OF_SHAPES = frozenset(["EyeLike", "Shape", "Size"])  # of whose operand only shape and type count
# Values are drawn when the model runs.
RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
# Texts: a Concat of a text with itself doubles it, whatever its shape is.
TEXTS = frozenset(["RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"])
# Their results are elements of the first operand, whatever these are; those of weights are views, which read none.
_MOVES = frozenset(["Flatten", "Identity", "Reshape", "Split", "Squeeze", "Transpose", "Unsqueeze"])
# Multiply-adds per element of the result are those of the operands' other elements, or fewer.
CONTRACTIONS = frozenset(
    ["Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearConv",
     "QLinearMatMul"]
)  # fmt: skip
LIMITED = GROWING | CONTRACTIONS | TEXTS
LARGEST_RESULT = 2**26  # elements, unless the operands have as many
LARGEST_TOTAL = 2**29  # bytes of all results, or …
LARGEST_FACTOR = 16  # … so many times the bytes of the model's own constants
LARGEST_WORK = 2**36  # multiply-adds of a node, at most
# Its operand takes less room than its result, which is what quantised weights are for.
_KEPT = frozenset(["DequantizeLinear"])
# ONNX's reference implementation is wrong for some forms of these, goes element by element, or subtracts the square of
# the mean from the mean of squares, of which nothing may be left.
_DOUBTFUL = frozenset(
    ["AffineGrid", "Attention", "AveragePool", "ConvTranspose", "DeformConv", "Elu", "GRU", "GlobalAveragePool",
     "GlobalLpPool", "GlobalMaxPool", "GridSample", "LRN", "LSTM", "LeakyRelu", "LogSoftmax", "LpNormalization",
     "LpPool", "MaxPool", "MeanVarianceNormalization", "OneHot", "PRelu", "QLinearConv", "QLinearMatMul", "RNN",
     "ReduceLogSumExp", "Resize", "RoiAlign"]
)  # fmt: skip
# Its steps are rounded to half precision, where sums of squares overflow and what 1 is added to is lost.
_DOUBTFUL_IN_HALVES = frozenset(
    ["BatchNormalization", "Gelu", "GroupNormalization", "InstanceNormalization", "LayerNormalization",
     "RMSNormalization"]
)  # fmt: skip
_LARGEST_COUNT = 2**63 - 1
_LARGEST_STEP = 2.0**31  # it makes steps integers of 32 bits before they saturate
_CASTS = frozenset(["Cast", "CastLike"])
# It sums in the type of the result, which holds that but perhaps not the sum: halves and integers are made doubles.
_OF_SUMS = frozenset(["ReduceL2", "ReduceLogSum", "ReduceMean"])


def fold_constants(draft: Draft) -> Draft:
    """Return the draft with every node replaced by its value that depends on constants and static shapes alone.

    Folding a Shape makes a Reshape's result known, which makes the next Shape static: hence until nothing changes.
    A node that produces an output of the model stays, and so does one that cannot be computed: a later stage either
    compiles it or names it. Selections by constants become indices, so that their shapes are known. Values without
    elements are known as well.
    """
    room_bytes = room_for_folds(draft.constants) + _size_bytes(draft.constants)
    while True:
        types = infer_types(draft)
        filled = without_empty_values(draft, types)
        folded = _index_selections(_fold_once(filled, types, room_bytes - _size_bytes(draft.constants)))
        if folded is draft:
            return draft
        draft = folded


def _index_selections(draft: Draft) -> Draft:
    """Return the draft with a Gather in the place of each Compress whose condition is known.

    ``y = Compress<axis=1>(x, [true, false, true])`` becomes ``y = Gather<axis=1>(x, [0, 2])``, after a Reshape to one
    dimension if there is no axis. How many elements are taken otherwise depends on data.
    """
    nodes = tuple(draft.proto.graph.node)
    known = [node for node in nodes if node.op_type == "Compress" and node.input[1] in draft.constants]
    if not known:
        return draft
    names, values = draft.names()
    values |= set(draft.constants)
    constants = dict(draft.constants)
    replaced = {id(node): tuple(_indexed(node, constants, names, values)) for node in known}
    return draft.replaced([new for node in nodes for new in replaced.get(id(node), (node,))], constants)


def _indexed(
    node: onnx.NodeProto, constants: dict[str, Constant], names: set[str], values: set[str]
) -> Iterator[onnx.NodeProto]:
    data, condition = node.input
    if all(entry.name != "axis" for entry in node.attribute):
        shape = free_name(f"{node.output[0]}.shape", values)
        constants[shape] = np.array([-1], np.int64)
        flat = free_name(f"{node.output[0]}.flat", values)
        yield helper.make_node("Reshape", [data, shape], [flat], name=free_name(f"{node.name}.reshape", names))
        data = flat
    indices = free_name(f"{node.output[0]}.indices", values)
    constants[indices] = np.flatnonzero(constants[condition]).astype(np.int64)
    yield helper.make_node("Gather", [data, indices], node.output, name=node.name, axis=integer(node, "axis"))


def _fold_once(draft: Draft, types: Types, room_bytes: int) -> Draft:
    constants = dict(draft.constants)
    outputs = frozenset(draft.output_names)
    kept = []
    for node in draft.proto.graph.node:
        operands = {name: constants[name] for name in node.input if name in constants}
        may = not outputs.intersection(node.output) and may_fold(node, types, operands, room_bytes)
        values = _value(node, operands, draft, types) if may else None
        if values is None:
            kept.append(node)
        else:
            constants.update(values)
            room_bytes -= _size_bytes(values)
    return draft if len(kept) == len(draft.proto.graph.node) else draft.replaced(kept, constants)


def _value(node: onnx.NodeProto, operands: Constants, draft: Draft, types: Types) -> Constants | None:
    if node.op_type in RANDOM or _is_doubtful(node, types) or node.op_type in _KEPT:
        return None
    if node.op_type in OF_SHAPES:
        known = types.get(node.input[0])
        if known is None or known.known_shape is None:
            return None
        if node.op_type != "EyeLike":
            return _counted(node, known.known_shape)
        # Only the shape counts: a view of one element has it without the memory.
        stand_in = np.broadcast_to(np.zeros((), dtype=known.dtype), known.known_shape)
        return _computed(node, {node.input[0]: stand_in}, draft, types)
    if node.op_type == "CastLike" and node.input[1] in types:  # only the type of its second operand counts
        data, like = node.input
        if data != like:
            operands = {**operands, like: np.zeros((), dtype=types[like].dtype)}
    if any(name and name not in operands for name in node.input):
        return None
    return None if _is_undefined(node, operands) else _computed(node, operands, draft, types)


def _is_undefined(node: onnx.NodeProto, operands: Constants) -> bool:
    """Whether implementations compute different things of such operands."""
    if node.op_type in _MOVES:
        return False
    if any(element_kind(value.dtype.name) == "f" and np.isnan(value).any() for value in operands.values()):
        return True  # what an extremum or its place is then differs from one implementation to the next
    if node.op_type == "Conv":  # the reference puts zeros between dilated elements, and infinity times 0 is undefined
        return not all(np.isfinite(value).all() for value in operands.values())
    if node.op_type.startswith("Reduce"):
        return not operands[node.input[0]].size  # where it is defined, it is known without computing
    if node.op_type != "QuantizeLinear":
        return False
    # ONNX's reference implementation does not hold the steps of all numbers, also of those that saturate.
    data, scale = (np.abs(operands[name].astype(np.float64)) for name in node.input[:2])
    return not data.max(initial=0.0) < _LARGEST_STEP * scale.min(initial=np.inf)


def _counted(node: onnx.NodeProto, shape: tuple[int, ...]) -> Constants | None:
    """Return a part of a shape, or how many elements it has; of more than NumPy counts, too."""
    if node.op_type == "Size":
        count = math.prod(shape)
        return None if count > _LARGEST_COUNT else {node.output[0]: np.array(count, dtype=np.int64)}
    start, end = integer(node, "start"), integer(node, "end", len(shape))
    return {node.output[0]: np.array(shape[start:end], dtype=np.int64)}


def _is_doubtful(node: onnx.NodeProto, types: Types) -> bool:
    """Whether ONNX's reference implementation is no oracle: of powers of two it departs from the table of Cast."""
    results = {types[name].dtype for name in node.output if name in types}
    in_halves = node.op_type in _DOUBTFUL_IN_HALVES and not results.isdisjoint(NARROW_REALS)
    return node.op_type in _DOUBTFUL or in_halves or (node.op_type in _CASTS and POWERS_OF_TWO in results)


def _size_bytes(constants: Constants) -> int:
    return sum(value.nbytes for value in constants.values())


def _computed(node: onnx.NodeProto, operands: Constants, draft: Draft, types: Types) -> Constants | None:
    """Return the results of a node by name; None if they cannot be computed, or are of another type than inferred."""
    try:
        results = _results(node, operands, draft.proto)
    except (IndexError, UserError, ValueError):
        return None
    values = {}
    for name, result in zip(filter(None, node.output), results, strict=True):
        value = np.asarray(result)
        known = types.get(name, TensorType(str(value.dtype), None))
        if str(value.dtype) != known.dtype or known.known_shape not in (None, value.shape):
            return None
        values[name] = read_only(value)
    return values


def _results(node: onnx.NodeProto, operands: Constants, proto: onnx.ModelProto) -> tuple[Constant, ...]:
    if node.op_type in _OWN:
        return _OWN[node.op_type](node, [operands[name] for name in node.input if name])
    if node.op_type in _OF_SUMS:
        data = operands[node.input[0]]
        if element_kind(data.dtype.name) in "iu" or data.dtype.name in NARROW_REALS:
            wide = {**operands, node.input[0]: data.astype(np.float64)}
            with np.errstate(all="ignore"):
                return tuple(value.astype(data.dtype) for value in evaluate(alone(node, wide, proto), wide, node.name))
    return evaluate(alone(node, operands, proto), operands, node.name)


def _split(node: onnx.NodeProto, operands: Sequence[Constant]) -> tuple[Constant, ...]:
    """Parts of the extents that are said, or as many as there are outputs, of which the last may be smaller."""
    data, *extents = operands
    said, axis = integers(node, "split") or (extents[0] if extents else ()), integer(node, "axis")
    largest = -(-data.shape[axis] // len(node.output))
    ends = np.cumsum(said) if len(said) else largest * np.arange(1, len(node.output) + 1)
    if len(ends) != len(node.output) or (len(said) and ends[-1] != data.shape[axis]):
        raise ValueError("other parts than outputs")  # who compiles it says so
    parts = np.split(data, ends[:-1].tolist(), axis)
    return tuple(part for part, name in zip(parts, node.output, strict=True) if name)


def _gather_elements(node: onnx.NodeProto, operands: Sequence[Constant]) -> tuple[Constant, ...]:
    """``Y[i, j] = X[indices[i, j], j]``, for which ONNX's reference implementation takes one dimension for another."""
    data, indices = operands
    axis = integer(node, "axis") % data.ndim
    part = tuple(slice(None) if at == axis else slice(extent) for at, extent in enumerate(indices.shape))
    return (np.take_along_axis(data[part], indices.astype(np.int64), axis),)


def _power(_: onnx.NodeProto, operands: Sequence[Constant]) -> tuple[Constant, ...]:
    """``Y = A ** B``, for which numpy takes the square root if B is 1/2 alone; negative infinity has none."""
    base, exponent = np.broadcast_arrays(*operands)
    with np.errstate(all="ignore"):
        found = np.power(np.append(base, base.dtype.type(1)), np.append(exponent, exponent.dtype.type(1)))[:-1]
    return (np.asarray(found.reshape(base.shape), base.dtype),)


# Of weights, split and transposed, which many a model has, importing the reference implementation is most of the work.
_OWN: Mapping[str, Callable[[onnx.NodeProto, Sequence[Constant]], tuple[Constant, ...]]] = {
    "GatherElements": _gather_elements,
    "Pow": _power,
    "Split": _split,
    "Transpose": lambda node, operands: (operands[0].transpose(integers(node, "perm")),),  # by default turned round
}


def room_for_folds(constants: Constants) -> int:
    """Return the bytes that results of folding may have in all, for a model with such constants."""
    return max(LARGEST_TOTAL, LARGEST_FACTOR * sum(value.nbytes for value in constants.values()))


def may_fold(node: onnx.NodeProto, types: Types, operands: Constants, room_bytes: int) -> bool:
    """Return whether a node of constants may be computed with so much room left."""
    if node.op_type in TEXTS:
        return False
    results = [types[name] for name in node.output if name in types]
    shapes = [result.known_shape for result in results]
    if node.op_type == "Range" and None in shapes:
        shapes = [_range_shape(node, operands)]
    if node.op_type in GROWING and (not shapes or None in shapes):
        return False
    sizes = [0 if shape is None else math.prod(shape) for shape in shapes]
    most = max(LARGEST_RESULT, sum(value.size for value in operands.values()))
    size_bytes = sum(size * np.dtype(result.dtype).itemsize for size, result in zip(sizes, results, strict=True))
    if max(sizes, default=0) > most or size_bytes > room_bytes:
        return False
    return node.op_type not in CONTRACTIONS or _most_work(node, operands) <= LARGEST_WORK


def _range_shape(node: onnx.NodeProto, operands: Constants) -> tuple[int, ...] | None:
    """Return the shape of a Range of constants, which ONNX does not infer for every type; None if there is none."""
    if not all(name in operands and operands[name].size == 1 for name in node.input):
        return None
    start, limit, delta = (float(operands[name].item()) for name in node.input)
    count = (limit - start) / delta if delta else math.inf
    return (max(math.ceil(count), 0),) if math.isfinite(count) else None


def _most_work(node: onnx.NodeProto, operands: Constants) -> int:
    """Return no fewer than the multiply-adds of a contraction."""
    given = [operands[name] for name in node.input if name in operands]
    if node.op_type == "Einsum" or len(given) < 2:
        return int(math.prod(value.size for value in given))
    first, *others = given[:2]
    if node.op_type in {"Gemm", "MatMul", "MatMulInteger"} and first.ndim and others:
        # Each element of the first meets, at most, what the second has beside the summed dimension.
        return int(first.size * max(1, others[0].size // max(1, min(first.shape))))
    return int(first.size * math.prod(other.size for other in others))

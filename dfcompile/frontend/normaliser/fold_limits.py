"""What may be folded: results and work of reasonable size, estimated before anything is computed.

A few bytes of a model can ask for terabytes: an Expand to any shape, a chain of Concats that each double, a product
over all indices of an Einsum. Such a node is left alone: it is then a task like any other, or an error where it is
lowered.
"""

import math

import numpy as np
import onnx

from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.onnx.shapes import Types

# Nodes whose result may be far larger than their operands; without a known shape they are left alone.
GROWING = frozenset(["CenterCropPad", "ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile"])
OF_SHAPES = frozenset(["EyeLike", "Shape", "Size"])  # of whose operand only shape and type count
# Values are drawn when the model runs.
RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
# Texts: a Concat of a text with itself doubles it, whatever its shape is.
TEXTS = frozenset(["RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"])
# Multiply-adds per element of the result are those of the operands' other elements, or fewer.
CONTRACTIONS = frozenset(
    ["Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearConv",
     "QLinearMatMul"]
)  # fmt: skip
LARGEST_RESULT = 2**26  # elements, unless the operands have as many
LARGEST_TOTAL = 2**29  # bytes of all results, or …
LARGEST_FACTOR = 16  # … so many times the bytes of the model's own constants
LARGEST_WORK = 2**36  # multiply-adds of a node, at most


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

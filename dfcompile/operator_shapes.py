"""Reads the shapes of a model's operators for their I/O bounds: products, windows, rows."""

from collections.abc import Callable
from math import gcd, prod

from dfcompile.canonical_dag import TensorRole
from dfcompile.frontend import Coverage, Program
from dfcompile.io_bounds.einsum.convolution import Convolution, Pooling
from dfcompile.io_bounds.einsum.plain import Attention, gemm
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, BoundedTensor, Operand, Rows, Shape
from dfcompile.lowering.node import Operator
from dfcompile.lowering.program_nodes import onnx_operators
from dfcompile.lowering.tensor import Tensor
from dfcompile.lowering.windows import windows_of
from dfcompile.moved_operands import least_read, least_written, moving, words_of
from dfcompile.records import replace

_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "Gemm"})
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "FusedConv", "QLinearConv"})
_POOLINGS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_NORMALISATIONS = frozenset({
    "LayerNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
    "MeanVarianceNormalization", "LpNormalization",
})  # fmt: skip
# One result word of one word of each operand; a transposition does so in another order.
_ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BiasGelu",
    "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "DequantizeLinear", "Div", "Elu", "Equal", "Erf", "Exp", "FastGelu", "Floor", "Gelu", "Greater",
    "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max",
    "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "QuantizeLinear", "QuickGelu",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt",
    "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Transpose", "Where", "Xor",
})  # fmt: skip
_MOVING = frozenset({"Concat", "DepthToSpace", "Expand", "Pad", "Slice", "SpaceToDepth", "Split", "Tile"})
_SOFTMAXES = frozenset({"Softmax", "LogSoftmax", "Hardmax"})


def bounded_model(program: Program) -> BoundedModel:
    """Return the operators of a program of level 0 as their bounds see them; views are their arrays themselves."""
    roles = {port.array: TensorRole.INPUT for port in program.inputs}
    roles |= dict.fromkeys(program.parameters, TensorRole.PARAMETER)
    roles |= {port.array: TensorRole.OUTPUT for port in program.outputs}
    views = {node.name for node in program.nodes if node.coverage is Coverage.VIEW}
    root: dict[str, str] = {}
    tensors: dict[str, BoundedTensor] = {}
    operators = []
    for op in onnx_operators(program):
        if op.origin in views and op.inputs and op.inputs[0] is not None:
            source = _root(op.inputs[0], root)
            root |= {result.name: source for result in op.results()}
            continue
        for tensor in (*moving(op), *op.results()):
            name = _root(tensor, root)
            role = roles.get(name, TensorRole.INTERMEDIATE)
            tensors.setdefault(name, BoundedTensor(name, words_of(tensor), tensor.element_bytes, role))
        operators.append(_operator(op, root))
    outputs = {root[name] for name in root if roles.get(name) is TensorRole.OUTPUT}
    found = tuple(
        replace(t, role=TensorRole.OUTPUT) if t.name in outputs and t.role is TensorRole.INTERMEDIATE else t
        for t in tensors.values()
    )
    return BoundedModel(program.name, tuple(operators), found)


def _root(tensor: Tensor, root: dict[str, str]) -> str:
    return root.get(tensor.name, tensor.name)


def _operator(op: Operator, root: dict[str, str]) -> BoundedOperator:
    read = next((reader for types, reader in _READERS if op.op_type in types), _in_rows)
    count, shape, operands = read(op) or _in_rows(op)
    unit = gcd(*(tensor.element_bytes for tensor in (*operands, *op.results())))
    reads: dict[str, Operand] = {}
    for place, tensor in enumerate(operands):
        words = least_read(op, tensor)
        if place == 0 and op.op_type in _CONVOLUTIONS | _POOLINGS:
            windows = shape.windows if isinstance(shape, Pooling) else shape
            words = windows.touched_words if isinstance(windows, Convolution) else _touched(op, words)
        name = _root(tensor, root)
        reads.setdefault(name, Operand(name, words, tensor.element_bytes // unit))
    return BoundedOperator(
        name=op.origin,
        op_type=op.op_type,
        count=count,
        shape=shape if len(reads) == len(operands) or isinstance(shape, Rows) else None,
        reads=tuple(reads.values()),
        writes=tuple(
            Operand(_root(result, root), least_written(op, result), result.element_bytes // unit)
            for result in op.results()
        ),
        element_bytes=unit,
        is_elementwise=op.op_type in _ELEMENTWISE | _MOVING,
    )


def _touched(op: Operator, words: int) -> int:
    """Return the words that windows of one word read."""
    x, y = op.input(0), op.results()[0]
    return min(words, x.shape[0] * x.shape[1] * prod(y.shape[2:]))


_Found = tuple[int, Shape, tuple[Tensor, ...]]


def _product(op: Operator) -> _Found | None:
    """Return a product of matrices; broadcast dimensions of one operand are more rows or columns."""
    a, b = op.input(0), op.input(3 if op.op_type == "QLinearMatMul" else 1)
    rest = tuple(t for t in op.operands() if t is not a and t is not b)
    if op.op_type == "Gemm":
        flips = op.integer("transA", 0), op.integer("transB", 0)
        (m, k), n = (a.shape[:: -1 if flips[0] else 1]), b.shape[0 if flips[1] else 1]
        return 1, gemm(m, k, n), (a, b, *rest)
    if a.rank < 2 or b.rank < 2 or op.op_type == "FusedMatMul":
        return None
    rank = max(a.rank, b.rank) - 2
    left, right = ((1,) * (rank - t.rank + 2) + t.shape[:-2] for t in (a, b))
    count, rows, columns = 1, a.shape[-2], b.shape[-1]
    for mine, theirs in zip(left, right, strict=True):
        if mine == theirs:
            count *= mine
        elif theirs == 1:
            rows *= mine
        else:
            columns *= theirs
    return count, gemm(rows, a.shape[-1], columns), (a, b, *rest)


def _convolution(op: Operator) -> _Found | None:
    """Return a convolution; one whose windows are single words that lie side by side is a product of matrices."""
    if op.integer("channels_last", 0):  # an attribute of contributed operators alone
        return None
    x, w, y = op.input(0), op.input(3 if op.op_type == "QLinearConv" else 1), op.output()
    groups = op.integer("group", 1)
    axes = _axes(op, w.shape[2:], x, y)
    rest = tuple(t for t in op.operands() if t is not x and t is not w)
    shape = Convolution(x.shape[0], groups, w.shape[1], w.shape[0] // groups, axes)
    return (*(shape.product or (1, shape)), (x, w, *rest))


def _pooling(op: Operator) -> _Found | None:
    """Return windows over each channel."""
    y = _only_result(op)
    if y is None or op.integer("channels_last", 0):
        return None
    x = op.input(0)
    axes = _axes(op, op.integers("kernel_shape"), x, y)
    return 1, Pooling(Convolution(x.shape[0], x.shape[1], 1, 1, axes)), (x,)


def _axes(op: Operator, taps: tuple[int, ...], x: Tensor, y: Tensor) -> tuple[WindowAxis, ...]:
    windows = windows_of(op, taps)
    return tuple(
        map(WindowAxis, y.shape[2:], taps, windows.strides, windows.dilations, windows.pads_begin, x.shape[2:])
    )


def _attention(op: Operator) -> _Found | None:
    """Return attention whose operands are split into heads already; heads that share keys are more rows."""
    q, k, v = (op.input(place) for place in range(3))
    y = _only_result(op)
    if op.op_type != "Attention" or q.rank != 4 or y is None or len(op.operands()) > 4:
        return None
    if len({tensor.element_bytes for tensor in (q, k, v, y)}) > 1:
        return None
    batch, heads, rows, width = q.shape
    is_masked = len(op.operands()) > 3 or op.integer("is_causal", 0) != 0
    shape = Attention(rows * (heads // k.shape[1]), k.shape[2], width, v.shape[3], is_masked)
    return batch * k.shape[1], shape, (q, k, v, *op.operands()[3:])


def _only_result(op: Operator) -> Tensor | None:
    """Return the first result if no other is used; of some operators a model may use another one alone."""
    return op.optional_output(0) if len(op.results()) == 1 else None


_READERS: tuple[tuple[frozenset[str], Callable[[Operator], _Found | None]], ...] = (
    (_PRODUCTS, _product),
    (_CONVOLUTIONS, _convolution),
    (_POOLINGS, _pooling),
    (frozenset({"Attention"}), _attention),
)


def _in_rows(op: Operator) -> _Found:
    return 1, _rows(op), tuple(sorted(moving(op), key=lambda tensor: -prod(tensor.shape)))


def _rows(op: Operator) -> Shape:
    """Return how an operator goes over its rows; ``None`` of one whose traffic is not known."""
    if not op.operands() or not op.results():
        return None
    x, y = op.operands()[0], op.results()[0]
    if op.op_type in _SOFTMAXES:
        return Rows(x.shape[op.integer("axis", -1)] if x.rank else 1, passes=2)
    if op.op_type in _NORMALISATIONS:
        return Rows(_normalised(op, x), passes=2)
    if op.op_type.startswith("Reduce") or op.op_type == "GlobalAveragePool":
        return Rows()
    is_elementwise = op.op_type in _ELEMENTWISE and all(
        prod(t.shape) == prod(y.shape) or _is_broadcast(t.shape, y.shape) for t in op.operands()
    )
    return Rows() if is_elementwise and max(prod(t.shape) for t in op.operands()) == prod(y.shape) else None


def _normalised(op: Operator, x: Tensor) -> int:
    if op.op_type in ("GroupNormalization", "InstanceNormalization"):
        groups = op.integer("num_groups", x.shape[1]) if op.op_type == "GroupNormalization" else x.shape[1]
        return prod(x.shape[1:]) // groups
    return prod(x.shape[op.integer("axis", -1) % x.rank :])


def _is_broadcast(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    aligned = (1,) * (len(whole) - len(shape)) + shape
    return len(aligned) == len(whole) and all(mine in (1, theirs) for mine, theirs in zip(aligned, whole, strict=True))

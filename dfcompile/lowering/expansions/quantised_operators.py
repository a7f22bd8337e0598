"""Operators on steps of 8 bits, as onnxruntime's quantiser writes them, but for products."""

from math import prod

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expansions.pooling import window_of, window_sizes
from dfcompile.lowering.expressions import literal
from dfcompile.lowering.operators import Concat
from dfcompile.lowering.steps import ACCUMULATED, Terms, is_zero, shifted
from dfcompile.lowering.windows import windows_of

_COERCED_BEFORE = 13  # version of Softmax; before, it looked at all axes from the given one on


def two_operands(op: Operator, build: CanonicalFragment) -> None:
    """``C = quantise(dequantise(A) + dequantise(B))``, or their product: one element-wise task."""
    terms, y = Terms(), op.output()
    left, right = (terms.real(op.input(at), op.input(at + 1), op.optional_input(at + 2)) for at in (0, 3))
    sign = "+" if op.op_type.endswith("Add") else "*"
    source = terms.steps(f"{left} {sign} {right}", op.input(6), op.optional_input(7), y.dtype)
    build.elementwise(source, terms.operands, y)


def one_operand(op: Operator, build: CanonicalFragment) -> None:
    """``Y = quantise(f(dequantise(X)))``: one element-wise task."""
    terms, y = Terms(), op.output()
    x = terms.real(op.input(0), op.input(1), op.optional_input(2))
    if op.op_type.endswith("Sigmoid"):
        value = f"1 / (1 + exp(-{x}))"
    else:
        value = f"{x} if {x} >= 0 else {literal(op.real('alpha', 0.01), 'float32')} * {x}"
    build.elementwise(terms.steps(value, op.input(3), op.optional_input(4), y.dtype), terms.operands, y)


_REWRITES = {"Add": two_operands, "Mul": two_operands, "LeakyRelu": one_operand, "Sigmoid": one_operand}
EXPANSIONS = tuple(
    onnx_expansion(f"com.microsoft.QLinear{name}", "map", default=True)(rewrite) for name, rewrite in _REWRITES.items()
)


@onnx_expansion("com.microsoft.QLinearWhere", "map", default=True)
def qlinear_where(op: Operator, build: CanonicalFragment) -> None:
    """``Z = quantise(dequantise(X) if condition else dequantise(Y))``: one element-wise task."""
    terms, z = Terms(), op.output()
    condition = terms.name(op.input(0))
    x, y = (terms.real(op.input(at), op.input(at + 1), op.input(at + 2)) for at in (1, 4))
    source = terms.steps(f"{x} if {condition} else {y}", op.input(7), op.input(8), z.dtype)
    build.elementwise(source, terms.operands, z)


@onnx_expansion("com.microsoft.QLinearSoftmax", "stable", default=True)
def qlinear_softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = quantise(e / sum(e))``, ``e = exp((X - max(X)) * scale)``: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    axes = range(axis, x.rank) if op.integer("opset", _COERCED_BEFORE) < _COERCED_BEFORE else (axis,)
    top = build.reduced("largest", Reduction.MAX, [x], axes, step="max")
    source, operands = "exp(dace.float32(dace.int32(a) - dace.int32(b)) * c)", [x, top, op.input(1)]
    exponentials = build.computed("exponentials", source, operands, x.shape, "float32", step="exp")
    total = build.reduced("total", Reduction.SUM, [exponentials], axes, dtype="float32", step="sum")
    terms = Terms()
    value = f"{terms.name(exponentials)} / {terms.name(total)}"
    source = terms.steps(value, op.input(3), op.optional_input(4), y.dtype)
    build.elementwise(source, terms.operands, y, step="divide")


@onnx_expansion("com.microsoft.QLinearAveragePool", "window", default=True)
def qlinear_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """The sum of every window less its zero points, divided and rounded: one downsampler, one element-wise task."""
    check_channels_first(op)
    y, windows = op.output(), windows_of(op, op.integers("kernel_shape"))
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    total = build.made("total", window_of(windows), [windows.padded(build, x)], y.shape, ACCUMULATED, step="window")
    sizes, terms = window_sizes(op, build, windows), Terms()
    sums, count = terms.name(total), str(sizes.max())
    if sizes.min() < sizes.max():
        count = terms.name(build.parameter("sizes", sizes.astype("float32")))
    _add_average(op, build, terms, sums, count)


@onnx_expansion("com.microsoft.QLinearGlobalAveragePool", "map", default=True)
def qlinear_global_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """The sum of every channel less its zero points, divided and rounded: one downsampler, one element-wise task."""
    check_channels_first(op)
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    total = build.reduced("total", Reduction.SUM, [x], range(2, x.rank), dtype=ACCUMULATED, step="sum")
    terms = Terms()
    _add_average(op, build, terms, terms.name(total), str(prod(x.shape[2:])))


def _add_average(op: Operator, build: CanonicalFragment, terms: Terms, total: str, count: str) -> None:
    value = f"dace.float32({total}) * {terms.name(op.input(1))} / {count}"
    source = terms.steps(value, op.input(3), op.optional_input(4), op.output().dtype)
    build.elementwise(source, terms.operands, op.output(), step="divide")


@onnx_expansion("com.microsoft.QLinearConcat", "copy", default=True)
def qlinear_concat(op: Operator, build: CanonicalFragment) -> None:
    """Each operand at the scale of the result, one element-wise task unless it is there; then as Concat."""
    scale, zero_point, y = op.input(0), op.input(1), op.output()
    parts = []
    for at in range(2, len(op.inputs), 3):
        x, its_scale, its_zero_point = op.input(at), op.input(at + 1), op.input(at + 2)
        if x.dtype == y.dtype and _is_same(scale, its_scale) and _is_same(zero_point, its_zero_point):
            parts.append(x)
            continue
        terms, part = Terms(), build.array(f"part{len(parts)}", x.shape, y.dtype)
        value = terms.name(x) if x.dtype == "float32" else terms.real(x, its_scale, its_zero_point)
        source = terms.steps(value, scale, zero_point, y.dtype)
        build.elementwise(source, terms.operands, part, step=f"scale{len(parts)}")
        parts.append(part)
    if len(parts) == 1:
        build.view_as(parts[0], y)
    else:
        build.add(Concat(op.axis(rank=y.rank)), parts, y)


def _is_same(left: Tensor, right: Tensor) -> bool:
    if is_zero(left) and is_zero(right):
        return True
    return left.value is not None and right.value is not None and left.value.tobytes() == right.value.tobytes()


def check_channels_first(op: Operator) -> None:
    """Check that channels are the dimension behind the batch.

    Raises:
        UnsupportedOpError: they are the last one.
    """
    op.check_unknown(attributes={"channels_last": 0})

"""Products of what is quantised to 8 bits, accumulated in 32: of matrices, and over windows."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.conv import PerRow, add_direct, add_im2col, is_grouped
from dfcompile.lowering.expansions.gemm import add_product, inner_product
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.steps import ACCUMULATED, Terms, aligned, is_zero, quantised, rescaled, shifted


@onnx_expansion("MatMulInteger", "matmul", default=True)
def matmul_integer(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (A - a_zero) @ (B - b_zero)``: element-wise tasks for the zero points that are not 0, and a MatMul."""
    a, b = factors(op, build, (op.input(0), op.optional_input(2)), (op.input(1), op.optional_input(3)))
    add_product(build, a, b, op.output())


@onnx_expansion("QLinearMatMul", "matmul", default=True)
def qlinear_matmul(op: Operator, build: CanonicalFragment) -> None:
    """As MatMulInteger, then one element-wise task that scales and rounds the sums."""
    y = op.output()
    for position in (0, 3, 7):  # real numbers of 8 bits are not accumulated as integers
        found = op.input(position).dtype
        if found not in ("int8", "uint8"):
            raise op.unsupported(f"operand {position} is {found} against int8 or uint8")
    a, b = factors(op, build, (op.input(0), op.input(2)), (op.input(3), op.input(5)))
    terms, sums = Terms(), inner_product(build, a, b, y.shape, ACCUMULATED)
    rows, columns = max(y.rank - 2, 0), max(y.rank - 1, 0)
    value = rescaled(*(terms.name(each) for each in (sums, op.input(1), op.input(4), op.input(6))))
    source = quantised(value, terms.shift(op.input(7)), y.dtype)
    vectors = zip(terms.operands[1:], (rows, columns, rows, rows), strict=False)
    axes = [tuple(range(y.rank)), *(aligned(op, operand, y, axis) for operand, axis in vectors)]
    build.elementwise(source, terms.operands, y, axes=axes, step="scale")


@onnx_expansion("ConvInteger", "im2col", source="chellapilla06", default=True)
def conv_integer_im2col(op: Operator, build: CanonicalFragment) -> None:
    """As Conv by im2col, of data and filters less their zero points; 32 bits come out."""
    add_im2col(op, build, *windows_and_filters(op, build, 1, 3), None)


@onnx_expansion("ConvInteger", "direct", default=is_grouped)
def conv_integer_direct(op: Operator, build: CanonicalFragment) -> None:
    """As Conv directly, of data and filters less their zero points; 32 bits come out."""
    add_direct(op, build, *windows_and_filters(op, build, 1, 3), None)


@onnx_expansion("QLinearConv", "im2col", source="chellapilla06", default=True)
def qlinear_conv_im2col(op: Operator, build: CanonicalFragment) -> None:
    """As ConvInteger by im2col, then one element-wise task that adds the bias, scales and rounds."""
    add_im2col(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


@onnx_expansion("QLinearConv", "direct", default=is_grouped)
def qlinear_conv_direct(op: Operator, build: CanonicalFragment) -> None:
    """As ConvInteger directly, then one element-wise task that adds the bias, scales and rounds."""
    add_direct(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


def factors(
    op: Operator, build: CanonicalFragment, left: tuple[Tensor, Tensor | None], right: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Return the operands of a product less their zero points; given each with its zero point.

    A zero point that is a vector has an element per row of A, or per column of B.
    """
    (a, a_zero), (b, b_zero) = left, right
    rows = () if a_zero is None else aligned(op, a_zero, a, max(a.rank - 2, 0))
    columns = () if b_zero is None else aligned(op, b_zero, b, b.rank - 1)
    return shifted(build, a, a_zero, rows, "a"), shifted(build, b, b_zero, columns, "b")


def windows_and_filters(op: Operator, build: CanonicalFragment, at_filters: int, at_zero: int) -> tuple[Tensor, Tensor]:
    """Return data and filters less their zero points: padding, which stands for zero, is 0 then."""
    w_zero = op.optional_input(at_zero)
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    return x, shifted(build, op.input(at_filters), w_zero, () if w_zero is None else (0,), "w")


def qlinear_rescaling(op: Operator) -> PerRow:
    """Return what a QLinearConv makes of its sums."""
    zero_point, bias, y = op.input(7), op.optional_input(8), op.output()
    operands, total, shift = [op.input(1), op.input(4), op.input(6)], "a", ""
    if not is_zero(zero_point):
        operands.append(zero_point)
        shift = "e"
    if bias is not None:
        operands.append(bias)
        total = f"a + {operand_names(len(operands) + 1)[-1]}"
    source = quantised(rescaled(total, "b", "c", "d"), shift, y.dtype)
    return PerRow(source, tuple(operands), ACCUMULATED, "scale", "scaled")

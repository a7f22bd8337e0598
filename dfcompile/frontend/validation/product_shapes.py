"""Shapes of products: Gemm, MatMul, Einsum."""

from collections.abc import Mapping, Sequence

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.known_shapes import broadcast_together, require, shape_text
from dfcompile.frontend.onnx.result_shapes import einsum_extents
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to
from dfcompile.frontend.validation.window_shapes import check_groups


def _check_gemm(operands: Operands) -> None:
    operands.known(1)
    left, right, bias = operands.known(0, 2), operands.known(1, 2), operands.shape(2)
    rows, inner = left[::-1] if operands.integer("transA") else left
    other, columns = right[::-1] if operands.integer("transB") else right
    _check_inner(operands, inner, other)
    if bias is not None and not broadcasts_to(bias, (rows, columns)):
        raise UserError(operands.against(2, f"a product of {rows}×{columns}"))


def _check_matmul(operands: Operands) -> None:
    left, right = operands.known(0), operands.known(1)
    for position, shape in enumerate((left, right)):
        require(shape, f"{operands.label(position)} is a scalar against a matrix")
    _check_inner(operands, left[-1], right[-2] if len(right) > 1 else right[0])
    require(
        broadcast_together(left[:-2], right[:-2]),
        f"batches of {shape_text(left[:-2])} in {operands.label(0)} against {shape_text(right[:-2])} "
        f"in {operands.label(1)}",
    )


def _check_inner(operands: Operands, inner: int, other: int) -> None:
    found = f"{operands.label(0)} has an inner dimension of {inner}"
    require(inner == other, f"{found} against {other} of {operands.label(1)}")


def _check_quantised(operands: Operands) -> None:
    """One scale and zero point for all, or one per row of the left operand or column of the right one."""
    for matrix, positions, axis in ((0, (1, 2), -2), (3, (4, 5), -1)):
        shape = operands.shape(matrix)
        if shape is None or len(shape) < 2:
            continue
        for position in positions:
            steps = operands.shape(position)
            if steps is not None and len(steps) == 1 and steps[0] not in (1, shape[axis]):
                raise UserError(operands.against(position, f"1 or {shape[axis]} of {operands.label(matrix)}"))


def _check_steps_of_filters(filters: int, positions: Sequence[int], positions_of_filters: Sequence[int]) -> Check:
    """Return the check of a convolution of integers: one scale or zero point for all, of filters perhaps one for each.

    Args:
        filters: position of the operand.
        positions: of scales and zero points for all.
        positions_of_filters: of those of the filters.
    """

    def check(operands: Operands) -> None:
        weights = operands.shape(filters)
        if weights is not None and operands.shape(0) is not None:
            check_groups(operands, filters)
        for position in (*positions, *positions_of_filters):
            count = weights[0] if weights and position in positions_of_filters else 1
            steps = operands.shape(position)
            if steps is not None and steps not in ((), (1,), (count,)):
                raise UserError(operands.against(position, f"one or {count} elements"))

    return check


def _check_einsum(operands: Operands) -> None:
    terms = operands.text("equation", "").replace(" ", "").partition("->")[0].split(",")
    count = len(operands.node.input)
    require(len(terms) == count, f"equation of {len(terms)} terms against {count} operands")
    einsum_extents(terms, operands.known_shapes(), operands.label)


PRODUCT_CHECKS: Mapping[str, Check] = {
    "ConvInteger": _check_steps_of_filters(1, (2,), (3,)),
    "Einsum": _check_einsum,
    "Gemm": _check_gemm,
    "MatMul": _check_matmul,
    "QLinearConv": _check_steps_of_filters(3, (1, 2, 6, 7), (4, 5)),
    "QLinearMatMul": _check_quantised,
}

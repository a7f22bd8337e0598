"""Shapes of products: Gemm, MatMul, Einsum."""

from collections.abc import Callable, Mapping, Sequence

from dfcompile.frontend.validation.operands import (
    Operands,
    Shape,
    broadcast_together,
    broadcasts_to,
    check_rank,
    shape_text,
)
from dfcompile.frontend.validation.window_shapes import check_groups

_ELLIPSIS = "..."


def _check_gemm(operands: Operands) -> None:
    left, right, bias = operands.shape(0), operands.shape(1), operands.shape(2)
    if left is None or right is None:
        return
    check_rank(operands, 0, 2)
    check_rank(operands, 1, 2)
    rows, inner = left[::-1] if operands.integer("transA", 0) else left
    other, columns = right[::-1] if operands.integer("transB", 0) else right
    _check_inner(operands, inner, other)
    if bias is not None and not broadcasts_to(bias, (rows, columns)):
        raise operands.wrong(f"{operands.name(2)} is {shape_text(bias)} against a product of {rows}×{columns}")


def _check_matmul(operands: Operands) -> None:
    left, right = operands.shape(0), operands.shape(1)
    if left is None or right is None:
        return
    for position, shape in enumerate((left, right)):
        if not shape:
            raise operands.wrong(f"{operands.name(position)} is a scalar against a matrix")
    _check_inner(operands, left[-1], right[-2] if len(right) > 1 else right[0])
    if not broadcast_together(left[:-2], right[:-2]):
        raise operands.wrong(
            f"batches of {shape_text(left[:-2])} in {operands.name(0)} against {shape_text(right[:-2])} "
            f"in {operands.name(1)}"
        )


def _check_inner(operands: Operands, inner: int, other: int) -> None:
    if inner != other:
        raise operands.wrong(
            f"{operands.name(0)} has an inner dimension of {inner} against {other} of {operands.name(1)}"
        )


def _check_quantised(operands: Operands) -> None:
    """One scale and zero point for all, or one per row of the left operand or column of the right one."""
    _check_vectors(operands, 0, (1, 2), -2)
    _check_vectors(operands, 3, (4, 5), -1)


def _check_vectors(operands: Operands, matrix: int, positions: Sequence[int], axis: int) -> None:
    shape = operands.shape(matrix)
    if shape is None or len(shape) < 2:
        return
    for position in positions:
        given = operands.shape(position)
        if given is not None and len(given) == 1 and given[0] not in (1, shape[axis]):
            raise operands.wrong(
                f"{operands.name(position)} is {shape_text(given)} against 1 or {shape[axis]} of "
                f"{operands.name(matrix)}"
            )


def _check_integer_convolution(operands: Operands) -> None:
    check_groups(operands, 1)
    _check_steps(operands, (2,), 1)
    _check_steps(operands, (3,), _filters(operands, 1))


def _check_quantised_convolution(operands: Operands) -> None:
    check_groups(operands, 3)
    _check_steps(operands, (1, 2, 6, 7), 1)
    _check_steps(operands, (4, 5), _filters(operands, 3))


def _filters(operands: Operands, position: int) -> int:
    shape = operands.shape(position)
    return shape[0] if shape else 1


def _check_steps(operands: Operands, positions: Sequence[int], count: int) -> None:
    """One scale or zero point for all, or one per filter."""
    for position in positions:
        given = operands.shape(position)
        if given is not None and given not in ((), (1,), (count,)):
            raise operands.wrong(f"{operands.name(position)} is {shape_text(given)} against one or {count} elements")


def _check_einsum(operands: Operands) -> None:
    """A label stands for one extent; what an ellipsis hides is broadcast."""
    terms = operands.text("equation", "").replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(operands.shapes):
        raise operands.wrong(f"equation of {len(terms)} terms against {len(operands.shapes)} operands")
    extents: dict[str, tuple[int, int]] = {}  # label -> extent, operand
    hidden: list[Shape] = []
    for position, (term, shape) in enumerate(zip(terms, operands.shapes, strict=True)):
        if shape is None:
            continue
        before, ellipsis, after = term.partition(_ELLIPSIS)
        labels = len(before) + len(after)
        if labels > len(shape) or (labels < len(shape) and not ellipsis):
            raise operands.wrong(
                f"{operands.name(position)} has {len(shape)} dimensions against {labels} labels of {term!r}"
            )
        _check_labels(operands, position, before, shape, extents)
        _check_labels(operands, position, after, shape[len(shape) - len(after) :], extents)
        hidden.append(shape[len(before) : len(shape) - len(after)])
    for at, dims in enumerate(hidden):
        for other in hidden[:at]:
            if not broadcast_together(other, dims):
                raise operands.wrong(
                    f"an ellipsis stands for {shape_text(other)} against {shape_text(dims)} (they do not broadcast)"
                )


def _check_labels(
    operands: Operands, position: int, labels: str, shape: Sequence[int], extents: dict[str, tuple[int, int]]
) -> None:
    for label, extent in zip(labels, shape, strict=False):
        other, where = extents.setdefault(label, (extent, position))
        if other == 1:
            extents[label] = (extent, position)
        elif extent not in (1, other):
            raise operands.wrong(
                f"label {label!r} is {other} in {operands.name(where)} against {extent} in {operands.name(position)}"
            )


PRODUCT_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "ConvInteger": _check_integer_convolution,
    "Einsum": _check_einsum,
    "Gemm": _check_gemm,
    "MatMul": _check_matmul,
    "QLinearConv": _check_quantised_convolution,
    "QLinearMatMul": _check_quantised,
}

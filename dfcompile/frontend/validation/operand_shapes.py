"""Operand shapes: the operands of a node fit together, operator by operator."""

from collections.abc import Callable, Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed import CONTRIBUTED
from dfcompile.frontend.validation.axis_shapes import AXIS_CHECKS, check_axes
from dfcompile.frontend.validation.function_shapes import FUNCTION_CHECKS
from dfcompile.frontend.validation.index_shapes import INDEX_CHECKS
from dfcompile.frontend.validation.normalisation_shapes import NORMALISATION_CHECKS
from dfcompile.frontend.validation.operands import (
    Operands,
    broadcast_together,
    broadcasts_to,
    check_least,
    shape_text,
)
from dfcompile.frontend.validation.product_shapes import PRODUCT_CHECKS
from dfcompile.frontend.validation.window_shapes import WINDOW_CHECKS, WINDOW_LEAST


def check_operand_shapes(operands: Operands) -> None:
    """Check the shapes of a node's operands, as far as they are known.

    Raises:
        UserError: two operands, or an operand and an attribute, do not fit together.
    """
    op_type = operands.node.op_type
    if op_type in WINDOW_CHECKS:
        check_least(operands, WINDOW_LEAST)
    _check_vectors(operands)
    _check_flags(operands)
    check_axes(operands)
    _check_contributed(operands)
    check = _CHECKS.get(op_type)
    if check is not None:
        check(operands)


def _check_contributed(operands: Operands) -> None:
    operator = CONTRIBUTED.get(operands.node.op_type)
    if operator is not None:
        try:
            operator.results(operator.call_of(operands.node, operands.shapes, operands.constants))
        except UserError as error:
            raise operands.wrong(str(error)) from error


def _check_vectors(operands: Operands) -> None:
    """Operands that list sizes, axes and the like are vectors."""
    for position in _VECTORS.get(operands.node.op_type, ()):
        shape = operands.shape(position)
        if shape is not None and len(shape) != 1 and not (shape == () and operands.node.op_type in _ONE_AXIS):
            raise operands.wrong(f"{operands.name(position)} is {shape_text(shape)} against a vector")


def _check_flags(operands: Operands) -> None:
    """Attributes that switch something are 0 or 1, or one of a few."""
    for entry in operands.node.attribute:
        known = _FLAGS.get(entry.name, (entry.i,))
        if entry.i not in known:
            expected = ", ".join(map(str, known[:-1]))
            raise operands.wrong(f"attribute {entry.name!r} is {entry.i} against {expected} or {known[-1]}")


def _check_elementwise(operands: Operands) -> None:
    known = [(position, shape) for position, shape in enumerate(operands.shapes) if shape is not None]
    for at, (position, shape) in enumerate(known):
        for other, other_shape in known[:at]:
            if not broadcast_together(other_shape, shape):
                raise operands.wrong(
                    f"{operands.name(other)} is {shape_text(other_shape)} against {shape_text(shape)} "
                    f"of {operands.name(position)} (they do not broadcast)"
                )


def _check_variadic(operands: Operands) -> None:
    """Before operator set 8 these broadcast nothing."""
    known = [(position, shape) for position, shape in enumerate(operands.shapes) if shape is not None]
    for position, shape in known[1:] if operands.opset < _VARIADIC_BROADCAST else ():
        if shape != known[0][1]:
            raise operands.wrong(
                f"{operands.name(position)} is {shape_text(shape)} against {shape_text(known[0][1])} of "
                f"{operands.name(known[0][0])} (operator set {operands.opset} does not broadcast here)"
            )
    _check_elementwise(operands)


def _check_slope(operands: Operands) -> None:
    data, slope = operands.shape(0), operands.shape(1)
    if data is not None and slope is not None and not broadcasts_to(slope, data):
        raise operands.wrong(
            f"{operands.name(1)} is {shape_text(slope)} against {shape_text(data)} of {operands.name(0)} "
            "(it does not broadcast to that)"
        )


def _check_bounds(operands: Operands) -> None:
    for position in (1, 2):
        shape = operands.shape(position)
        if shape:
            raise operands.wrong(f"{operands.name(position)} is {shape_text(shape)} against a scalar")


# PyTorch's exporter writes a single axis of these as a scalar, which ONNX's inference and onnxruntime take as well.
_ONE_AXIS = frozenset(["Squeeze", "Unsqueeze"])
_VECTORS: Mapping[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Pad": (1, 3),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
    **{
        f"Reduce{name}": (1,)
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
}
_VARIADIC_BROADCAST = 8  # the operator set from which they do
_FLAGS = {
    "align_corners": (0, 1),
    "allowzero": (0, 1),
    "antialias": (0, 1),
    "ceil_mode": (0, 1),
    "count_include_pad": (0, 1),
    "detect_negative": (0, 1),
    "detect_positive": (0, 1),
    "exclude_outside": (0, 1),
    "exclusive": (0, 1),
    "fmod": (0, 1),
    "interleaved": (0, 1),
    "inverse": (0, 1),
    "is_causal": (0, 1),
    "keepdims": (0, 1),
    "largest": (0, 1),
    "noop_with_empty_axes": (0, 1),
    "onesided": (0, 1),
    "periodic": (0, 1),
    "qk_matmul_output_mode": (0, 1, 2, 3),
    "reverse": (0, 1),
    "saturate": (0, 1),
    "select_last_index": (0, 1),
    "sorted": (0, 1),
    "spatial": (0, 1),
    "storage_order": (0, 1),
    "training_mode": (0, 1),
    "transA": (0, 1),
    "transB": (0, 1),
    "upper": (0, 1),
}
_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or Pow
    Sub Where Xor
"""
_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "Clip": _check_bounds,
    "PRelu": _check_slope,
    **dict.fromkeys(_BROADCASTING.split(), _check_elementwise),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _check_variadic),
    **AXIS_CHECKS,
    **FUNCTION_CHECKS,
    **INDEX_CHECKS,
    **NORMALISATION_CHECKS,
    **PRODUCT_CHECKS,
    **WINDOW_CHECKS,
}

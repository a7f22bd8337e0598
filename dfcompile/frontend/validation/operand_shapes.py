"""Operand shapes: the operands of a node fit together, operator by operator."""

import contextlib
from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed import CONTRIBUTED
from dfcompile.frontend.onnx.known_shapes import UnknownShapeError, broadcast_together, require, shape_text
from dfcompile.frontend.validation.axis_shapes import AXIS_CHECKS, REDUCTIONS, check_axes
from dfcompile.frontend.validation.index_shapes import INDEX_CHECKS
from dfcompile.frontend.validation.layer_shapes import LAYER_CHECKS
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to
from dfcompile.frontend.validation.product_shapes import PRODUCT_CHECKS
from dfcompile.frontend.validation.window_shapes import WINDOW_CHECKS, WINDOW_LEAST


def check_operand_shapes(operands: Operands) -> None:
    """Check the shapes of a node's operands, as far as they are known.

    Raises:
        UserError: two operands, or an operand and an attribute, do not fit together.
    """
    op_type = operands.node.op_type
    checks = [_check_vectors, _check_flags, check_axes, _check_contributed, *filter(None, [_CHECKS.get(op_type)])]
    try:
        if op_type in WINDOW_CHECKS:
            operands.expect_numbers_at_least(WINDOW_LEAST)
        for check in checks:
            with contextlib.suppress(UnknownShapeError):
                check(operands)
    except UserError as error:
        raise UserError(f"node {operands.node.name!r}: {error}") from error


def _check_contributed(operands: Operands) -> None:
    operator = CONTRIBUTED.get(operands.node.op_type)
    if operator is not None:
        operator.results(operator.call_of(operands, operands.constants))


def _check_vectors(operands: Operands) -> None:
    """Operands that list sizes, axes and the like are vectors."""
    op_type = operands.node.op_type
    for position in _VECTORS.get(op_type, ()):
        shape = operands.shape(position)
        if shape is not None and len(shape) != 1 and not (shape == () and op_type in _ONE_AXIS):
            raise UserError(operands.against(position, "a vector"))


def _check_flags(operands: Operands) -> None:
    """Attributes that switch something are 0 or 1, or one of a few."""
    for name, value in operands.attributes.items():
        known = (0, 1, 2, 3) if name == _MODE else (0, 1) if name in _FLAGS else (value,)
        if value not in known:
            expected = ", ".join(map(str, known[:-1]))
            raise UserError(f"attribute {name!r} is {value} against {expected} or {known[-1]}")


def _check_elementwise(operands: Operands) -> None:
    known = operands.known_shapes()
    for at, (position, shape) in enumerate(known):
        for other, other_shape in known[:at]:
            if not broadcast_together(other_shape, shape):
                wanted = f"{shape_text(shape)} of {operands.label(position)} (they do not broadcast)"
                raise UserError(operands.against(other, wanted))


def _check_variadic(operands: Operands) -> None:
    """Before operator set 8 these broadcast nothing."""
    known = operands.known_shapes()
    for position, shape in known[1:] if operands.opset < _VARIADIC_BROADCAST else ():
        first, expected = known[0]
        why = f"(operator set {operands.opset} does not broadcast here)"
        wanted = f"{shape_text(expected)} of {operands.label(first)} {why}"
        require(shape == expected, operands.against(position, wanted))
    _check_elementwise(operands)


def _check_slope(operands: Operands) -> None:
    data, slope = operands.known(0), operands.known(1)
    wanted = f"{shape_text(data)} of {operands.label(0)} (it does not broadcast to that)"
    require(broadcasts_to(slope, data), operands.against(1, wanted))


def _check_bounds(operands: Operands) -> None:
    for position in (1, 2):
        operands.expect(position, ())


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
    **dict.fromkeys(REDUCTIONS, (1,)),
}
_VARIADIC_BROADCAST = 8  # the operator set from which they do
_MODE = "qk_matmul_output_mode"
_SWITCHES = """
    align_corners allowzero antialias ceil_mode count_include_pad detect_negative detect_positive exclude_outside
    exclusive fmod interleaved inverse is_causal keepdims largest noop_with_empty_axes onesided periodic reverse
    saturate select_last_index sorted spatial storage_order training_mode transA transB upper
"""
_FLAGS = frozenset(_SWITCHES.split())
_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or Pow
    Sub Where Xor
"""
_CHECKS: Mapping[str, Check] = {
    "Clip": _check_bounds,
    "PRelu": _check_slope,
    **dict.fromkeys(_BROADCASTING.split(), _check_elementwise),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _check_variadic),
    **AXIS_CHECKS,
    **INDEX_CHECKS,
    **LAYER_CHECKS,
    **PRODUCT_CHECKS,
    **WINDOW_CHECKS,
}

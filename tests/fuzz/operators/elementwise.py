"""Nodes of operators that work element by element."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, helper
from onnx.defs import OpSchema

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import DTYPES, AttributeValue, DrawnNode, Generator, OperatorVersion

_CAST_TARGETS = [*DTYPES.values(), "float32", "float32"]


def unary(op: OperatorVersion, draw: Draw) -> DrawnNode:
    return DrawnNode([draw.array(draw.dtype(op.dtypes()), draw.shape())], _attributes(op, draw))


def _attributes(op: OperatorVersion, draw: Draw) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {}
    for name, attribute in sorted(op.schema.attributes.items()):
        if draw.chance(0.4):
            continue
        if attribute.type == OpSchema.AttrType.FLOAT:
            found[name] = draw.real() or 0.5
        elif attribute.type == OpSchema.AttrType.INT:
            found[name] = draw.integer(0, 1)
        elif name == "approximate":
            found[name] = draw.choice(["none", "tanh"])
    return found


def binary(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    left, right = draw.operand_shapes(draw.shape(), 2)
    divides = op.op_type in {"Div", "Mod"} and np.dtype(dtype).kind in "iu"
    second = draw.divisors(dtype, right) if divides else draw.array(dtype, right)
    return DrawnNode([draw.array(dtype, left), second], {})


def mod(op: OperatorVersion, draw: Draw) -> DrawnNode:
    drawn = binary(op, draw)
    first = drawn.operands[0]
    assert first is not None
    is_float = first.dtype.kind == "f"
    return DrawnNode(drawn.operands, {"fmod": 1} if is_float or draw.chance(0.4) else {})


def bit_shift(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    left, right = draw.operand_shapes(draw.shape(), 2)
    amounts = draw.whole(right, 0, 7, dtype)
    return DrawnNode([draw.array(dtype, left), amounts], {"direction": draw.choice(["LEFT", "RIGHT"])})


def power(op: OperatorVersion, draw: Draw) -> DrawnNode:
    base = draw.dtype(op.dtypes(0))
    exponent = draw.dtype(op.dtypes(1)) if op.since >= 12 else base
    left, right = draw.operand_shapes(draw.shape(), 2)
    if np.dtype(base).kind in "iu":  # what a negative power of an integer is, nothing says
        return DrawnNode([draw.whole(left, 0, 4, base), draw.whole(right, 0, 3, exponent)], {})
    return DrawnNode([draw.array(base, left), draw.array(exponent, right)], {})


def slope(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    shape = draw.shape(1)
    _, right = (shape, *draw.operand_shapes(shape, 2)[1:])
    return DrawnNode([draw.array(dtype, shape), draw.array(dtype, right)], {})


def variadic(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    full, count = draw.shape(), draw.integer(1, 4)
    shapes = draw.operand_shapes(full, count) if op.since >= 8 else [full] * count
    return DrawnNode([draw.array(dtype, shape) for shape in shapes], {})


def where(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes(1))
    condition, left, right = draw.operand_shapes(draw.shape(), 3)
    return DrawnNode([draw.array("bool", condition), draw.array(dtype, left), draw.array(dtype, right)], {})


def clip(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    data = draw.array(dtype, draw.shape())
    limits = sorted(draw.sizes(2, 0 if np.dtype(dtype).kind == "u" else -3, 6), reverse=draw.chance(0.1))
    if op.since < 11:
        named = zip(("min", "max"), limits, strict=True)
        return DrawnNode([data], {name: float(limit) for name, limit in named if draw.chance(0.7)})
    bounds: list[Array | None] = [np.asarray(limit, dtype) if draw.chance(0.7) else None for limit in limits]
    while bounds and bounds[-1] is None:
        bounds.pop()
    return DrawnNode([data, *bounds], {}, structure=(1, 2) if draw.chance(0.7) else ())


def cast(op: OperatorVersion, draw: Draw) -> DrawnNode:
    target = draw.choice(_CAST_TARGETS)
    data = _castable(draw, draw.dtype(op.dtypes()), target)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    return DrawnNode([data], {"to": TensorProto.BFLOAT16 if draw.chance(0.005) else code})


def cast_like(op: OperatorVersion, draw: Draw) -> DrawnNode:
    target = draw.choice(_CAST_TARGETS)
    return DrawnNode([_castable(draw, draw.dtype(op.dtypes()), target), draw.array(target, draw.shape())], {})


def _castable(draw: Draw, source: str, target: str) -> Array:
    """Return values whose cast is defined: no NaN, and nothing negative to an unsigned type, from a float."""
    shape = draw.shape()
    if np.dtype(source).kind != "f" or np.dtype(target).kind not in "iu":
        return draw.array(source, shape)
    least = 0 if np.dtype(target).kind == "u" else -60
    return draw.eighths(source, shape, least, 60)


_UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign
    Sqrt Swish Tan Tanh ThresholdedRelu
"""
_BINARY = "Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mul Or Sub Xor"
GENERATORS: Mapping[str, Generator] = {
    **dict.fromkeys(_UNARY.split(), unary),
    **dict.fromkeys(_BINARY.split(), binary),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), variadic),
    "BitShift": bit_shift,
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
    "Mod": mod,
    "PRelu": slope,
    "Pow": power,
    "Where": where,
}

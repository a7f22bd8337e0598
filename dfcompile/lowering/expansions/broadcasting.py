"""ONNX's element-wise operators of several operands, which are broadcast to one shape."""

from collections.abc import Mapping

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expressions import MOST_OPERANDS, is_real, literal, operand_names

_FORMULAS: Mapping[str, str] = {
    "Add": "a + b",
    "And": "a and b",
    "BitwiseAnd": "a & b",
    "BitwiseOr": "a | b",
    "BitwiseXor": "a ^ b",
    "Div": "a / b",
    "Equal": "a == b",
    "Greater": "a > b",
    "GreaterOrEqual": "a >= b",
    "Less": "a < b",
    "LessOrEqual": "a <= b",
    "Mul": "a * b",
    "Or": "a or b",
    "PRelu": "a if a >= 0 else a * b",
    "Sub": "a - b",
    "Where": "b if a else c",
    "Xor": "a != b",
}
# A power is not a root for negative infinity, and none is for a negative zero.
_SIMPLE_POWERS: Mapping[float, str] = {
    1.0: "a",
    2.0: "a * a",
    3.0: "a * a * a",
    0.5: "inf if a == -inf else sqrt(a + 0)",
    -1.0: "1 / a",
    -0.5: "0 if a == -inf else 1 / sqrt(a + 0)",
}


def several(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = f(A[i, …], B[i, …], …)``: one element-wise task; operands are broadcast."""
    build.elementwise(_FORMULAS[op.op_type], _operands(op), op.output())


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(several) for op_type in _FORMULAS)


def variadic(op: Operator, build: CanonicalFragment) -> None:
    """``Y = f(A, B, C, …)`` of any number of operands: one element-wise task; a view of a single operand.

    The largest and the smallest are NaN if an operand is.
    """
    operands = _operands(op)
    names = operand_names(len(operands))
    if len(operands) == 1:
        build.view_as(operands[0], op.output())
        return
    total = " + ".join(names)
    undefined = " or ".join(f"{name} != {name}" for name in names)
    propagated = f"nan if {undefined} else " if is_real(op.output().dtype) else ""
    extremum = f"{propagated}{op.op_type.lower()}({', '.join(names)})"
    source = {"Mean": f"({total}) / {len(names)}", "Sum": total}.get(op.op_type, extremum)
    build.elementwise(source, operands, op.output())


VARIADIC = tuple(onnx_expansion(op_type, "map", default=True)(variadic) for op_type in ("Max", "Mean", "Min", "Sum"))


@onnx_expansion("BitShift", "map", default=True)
def bit_shift(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A << B`` or ``A >> B``; beyond the width of the data type nothing is left but the sign."""
    direction = op.choice("direction", "", ("LEFT", "RIGHT"), "'LEFT' or 'RIGHT'")
    dtype = np.dtype(op.output().dtype)
    source = "a << b" if direction == "LEFT" else "a >> b"
    rest = "(-1 if a < 0 else 0)" if direction == "RIGHT" and dtype.kind == "i" else "0"
    # C++ leaves a shift of at least the width undefined.
    width = 8 * op.output().element_bytes
    in_range = f"b < {width}" if dtype.kind == "u" else f"b >= 0 and b < {width}"
    build.elementwise(f"{source} if {in_range} else {rest}", _operands(op), op.output())


@onnx_expansion("Mod", "map", default=True)
def mod(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A mod B`` with the sign of the divisor, or with that of the dividend if ``fmod`` is set."""
    is_integer = op.input(0).dtype.startswith(("int", "uint"))
    if op.integer("fmod", 0):
        source = "a % b" if is_integer else "fmod(a, b)"
    elif is_integer:
        source = "py_mod(a, b)"
    else:
        source = "fmod(a, b) + (b if fmod(a, b) * b < 0 else 0)"
    build.elementwise(source, _operands(op), op.output())


@onnx_expansion("Pow", "map", default=True)
def power(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A ** B`` in the data type of A; products and roots for the simple constant exponents.

    An exponent is a real number, whatever its data type: DaCe multiplies as often as an integer says, modulo 2^32.
    """
    base, exponent = op.input(0), op.input(1)
    if exponent.value is not None and exponent.elements == 1:
        value = float(exponent.value.item())
        if is_real(base.dtype) or value in (1.0, 2.0, 3.0):
            dtype = exponent.dtype if is_real(exponent.dtype) else "float64"
            source = _SIMPLE_POWERS.get(value, f"pow(a, {literal(value, dtype)})")
            build.elementwise(source, [base], op.output())
            return
    source = "pow(a, b)" if is_real(exponent.dtype) else "pow(a, dace.float64(b))"
    build.elementwise(source, [base, exponent], op.output())


def _operands(op: Operator) -> tuple[Tensor, ...]:
    operands = op.operands()
    op.refuse_if(len(operands) != len(op.inputs), "an operand is omitted")
    if len(operands) > MOST_OPERANDS:
        raise op.unsupported(f"{len(operands)} operands against {MOST_OPERANDS} at most (nest the operator)")
    return operands

"""Element-wise operators of ONNX and of onnxruntime: formulas with their attributes; operands are broadcast."""

from collections.abc import Mapping
from math import pi, sqrt

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expressions import MOST_OPERANDS, is_real, literal, operand_names, substitute


class Formula(Struct, frozen=True):
    """An expression of operand ``a`` and of attributes, with the attributes' defaults."""

    expression: str
    defaults: Mapping[str, float] = {}


# Where a zero has a sign: that of ONNX's formulas, hence `+ 0`, which makes a negative zero a positive one.
_SIGMOID = "1 / (1 + exp(-a))"
_SOFTPLUS = "max(a, 0) + log1p(exp(-abs(a)))"  # exp of what is never positive: no overflow
_GELU = f"0.5 * a * (1 + erf(a * {sqrt(0.5)!r}))"
GELU_BY_TANH = f"0.5 * a * (1 + tanh({sqrt(2 / pi)!r} * (a + 0.044715 * a * a * a)))"

# What C++ calls as ONNX does.
_FUNCTIONS = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "IsNaN", "Log", "Sin", "Sinh", "Sqrt", "Tan", "Tanh",
)  # fmt: skip
FORMULAS: Mapping[str, Formula] = {
    **{name: Formula(f"{name.lower()}(a)") for name in _FUNCTIONS},
    "BitwiseNot": Formula("~a"),
    "Celu": Formula("a if a > 0 else alpha * expm1(a / alpha) + 0", {"alpha": 1.0}),
    "Elu": Formula("a if a >= 0 else alpha * expm1(a)", {"alpha": 1.0}),
    "HardSigmoid": Formula("min(1.0, max(0.0, alpha * a + beta))", {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": Formula("a * min(1.0, max(0.0, a / 6 + 0.5))"),
    "LeakyRelu": Formula("a if a >= 0 else alpha * a", {"alpha": 0.01}),
    "Mish": Formula(f"a * tanh({_SOFTPLUS})"),
    "Neg": Formula("-a"),
    "Not": Formula("not a"),
    "Reciprocal": Formula("1 / a"),
    "Relu": Formula("max(0, a)"),  # in this order a NaN stays one
    "Round": Formula("rint(a)"),
    "Selu": Formula(
        "gamma * (a if a > 0 else alpha * expm1(a) + 0)",
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Shrink": Formula("a + bias if a < -lambd else a - bias if a > lambd else 0", {"bias": 0.0, "lambd": 0.5}),
    "Sigmoid": Formula(_SIGMOID),
    "Sign": Formula("1 if a > 0 else -1 if a < 0 else 0 if a == 0 else a"),
    "Softplus": Formula(_SOFTPLUS),
    "Softsign": Formula("a / (1 + abs(a))"),
    "Swish": Formula("a / (1 + exp(-alpha * a))", {"alpha": 1.0}),
    "ThresholdedRelu": Formula("a if a > alpha else 0", {"alpha": 1.0}),
}
# Of several operands.
_FORMULAS_OF_SEVERAL: Mapping[str, str] = {
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


def unary(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = f(X[i, …])``: one element-wise task."""
    formula, x = FORMULAS[op.op_type], op.input(0)
    # ONNX has single precision attributes only.
    attributes = {name: literal(op.real(name, value), "float32") for name, value in formula.defaults.items()}
    build.elementwise(substitute(formula.expression, attributes), [x], op.output())


OF_ONE = tuple(onnx_expansion(op_type, "map", default=True)(unary) for op_type in FORMULAS)


@onnx_expansion("Gelu", "map", default=True)
def gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X/2 * (1 + erf(X / sqrt(2)))``, or its approximation with the hyperbolic tangent."""
    formulas = {"none": _GELU, "tanh": GELU_BY_TANH}
    source = formulas[op.choice("approximate", "none", formulas, "'none' or 'tanh'")]
    build.elementwise(source, [op.input(0)], op.output())


@onnx_expansion("IsInf", "map", default=True)
def is_inf(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X is infinite)``, of both signs or of one."""
    signs = (op.integer("detect_negative", 1) != 0, op.integer("detect_positive", 1) != 0)
    every = {(True, True): "isinf(a)", (True, False): "a == -inf", (False, True): "a == inf"}
    source = every.get(signs, "a != a and a == a")  # nothing is to be found
    build.elementwise(source, [op.input(0)], op.output())


@onnx_expansion("Clip", "map", default=True)
def clip(op: Operator, build: CanonicalFragment) -> None:
    """``Y = min(high, max(low, X))``; a bound that is omitted does not bound. In this order a NaN stays one."""
    x = op.input(0)
    source = "a"
    operands = [x]
    for position, name, function in ((1, "min", "max"), (2, "max", "min")):
        bound = op.optional_input(position)
        if bound is not None:
            source = f"{function}({'abc'[len(operands)]}, {source})"
            operands.append(bound)
        elif name in op.attributes:  # before opset 11
            source = f"{function}({literal(op.real(name, 0.0), x.dtype)}, {source})"
    if source == "a":
        build.view_as(x, op.output())
    else:
        build.elementwise(source, operands, op.output())


@onnx_expansion("com.microsoft.Gelu", "map", source="onnxruntime", default=True)
def contributed_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X/2 * (1 + erf(X / sqrt(2)))``: one element-wise task."""
    build.elementwise(_GELU, [op.input(0)], op.output())


@onnx_expansion("com.microsoft.BiasGelu", "map", source="onnxruntime", default=True)
def bias_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``C = S/2 * (1 + erf(S / sqrt(2)))`` with ``S = A + B``: one element-wise task."""
    build.elementwise(substitute(_GELU, {"a": "a + b"}), [op.input(0), op.input(1)], op.output())


@onnx_expansion("com.microsoft.FastGelu", "map", source="onnxruntime", default=True)
def fast_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = S/2 * (1 + tanh(sqrt(2/pi) * (S + 0.044715 * S^3)))`` with ``S = X + bias``: one element-wise task."""
    source = GELU_BY_TANH if op.optional_input(1) is None else substitute(GELU_BY_TANH, {"a": "a + b"})
    build.elementwise(source, op.operands(), op.output())


@onnx_expansion("com.microsoft.QuickGelu", "map", source="onnxruntime", default=True)
def quick_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X / (1 + exp(-alpha * X))``: one element-wise task."""
    alpha = literal(op.real("alpha", 1.702), "float32")
    build.elementwise(f"a / (1 + exp(-{alpha} * a))", [op.input(0)], op.output())


@onnx_expansion("SwiGLU", "map", default=True)
def swiglu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A / (1 + exp(-alpha * A)) * B``: one element-wise task."""
    alpha = literal(op.real("alpha", 1.0), "float32")
    build.elementwise(f"a / (1 + exp(-{alpha} * a)) * b", [op.input(0), op.input(1)], op.output())


def several(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = f(A[i, …], B[i, …], …)``: one element-wise task; operands are broadcast."""
    build.elementwise(_FORMULAS_OF_SEVERAL[op.op_type], _operands(op), op.output())


OF_SEVERAL = tuple(onnx_expansion(op_type, "map", default=True)(several) for op_type in _FORMULAS_OF_SEVERAL)


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

"""ONNX's element-wise operators of one operand, and onnxruntime's: formulas with their attributes."""

from collections.abc import Mapping
from math import pi, sqrt

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.expressions import literal, substitute


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


def unary(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = f(X[i, …])``: one element-wise task."""
    formula, x = FORMULAS[op.op_type], op.input(0)
    # ONNX has single precision attributes only.
    attributes = {name: literal(op.real(name, value), "float32") for name, value in formula.defaults.items()}
    build.elementwise(substitute(formula.expression, attributes), [x], op.output())


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(unary) for op_type in FORMULAS)


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

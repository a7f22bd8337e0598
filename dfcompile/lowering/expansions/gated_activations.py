"""Activations of transformers: onnxruntime's Gelu in its variants, and ONNX's SwiGLU."""

from math import pi, sqrt

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.expressions import literal, substitute

_EXACT = f"0.5 * a * (1 + erf(a * {sqrt(0.5)!r}))"
_BY_TANH = f"0.5 * a * (1 + tanh({sqrt(2 / pi)!r} * (a + 0.044715 * a * a * a)))"


@onnx_expansion("com.microsoft.Gelu", "map", source="onnxruntime", default=True)
def gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X/2 * (1 + erf(X / sqrt(2)))``: one element-wise task."""
    build.elementwise(_EXACT, [op.input(0)], op.output())


@onnx_expansion("com.microsoft.BiasGelu", "map", source="onnxruntime", default=True)
def bias_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``C = S/2 * (1 + erf(S / sqrt(2)))`` with ``S = A + B``: one element-wise task."""
    build.elementwise(substitute(_EXACT, {"a": "a + b"}), [op.input(0), op.input(1)], op.output())


@onnx_expansion("com.microsoft.FastGelu", "map", source="onnxruntime", default=True)
def fast_gelu(op: Operator, build: CanonicalFragment) -> None:
    """``Y = S/2 * (1 + tanh(sqrt(2/pi) * (S + 0.044715 * S^3)))`` with ``S = X + bias``: one element-wise task."""
    source = _BY_TANH if op.optional_input(1) is None else substitute(_BY_TANH, {"a": "a + b"})
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

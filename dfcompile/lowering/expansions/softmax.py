"""Softmax along one axis (opset 13 and later), computed relative to the largest element so that nothing overflows."""

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators.reduce import kept_shape


@onnx_expansion("Softmax", "stable", default=True)
def softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = e / sum(e)`` with ``e = exp(X - max(X))`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = _largest(build, x, axis)
    exponentials = build.array("exponentials", x.shape)
    total = build.array("total", top.shape, sum_dtype(x.dtype))
    build.elementwise("exp(a - b)", [x, top], exponentials, step="exp")
    build.reduce(Reduction.SUM, [exponentials], total, [axis], step="sum")
    build.elementwise("a / b", [exponentials, total], y, step="divide")


@onnx_expansion("LogSoftmax", "stable", default=True)
def log_softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = d - log(sum(exp(d)))`` with ``d = X - max(X)`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = _largest(build, x, axis)
    differences = build.array("differences", x.shape)
    total = build.array("total", top.shape, sum_dtype(x.dtype))
    build.elementwise("a - b", [x, top], differences, step="difference")
    build.reduce(Reduction.SUM, [differences], total, [axis], "exp(a)", step="sum")
    build.elementwise("a - log(b)", [differences, total], y, step="subtract")


def _largest(build: CanonicalFragment, x: Tensor, axis: int) -> Tensor:
    top = build.array("largest", kept_shape(x.shape, [axis]))
    build.reduce(Reduction.MAX, [x], top, [axis], step="max")
    return top

"""Softmax along one axis (opset 13 and later), computed relative to the largest element so that nothing overflows."""

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion
from dfcompile.lowering.expressions import sum_dtype


@onnx_expansion("Softmax", "stable", default=True)
def softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = e / sum(e)`` with ``e = exp(X - max(X))`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = build.reduced("largest", Reduction.MAX, [x], [axis], step="max")
    exponentials = build.computed("exponentials", "exp(a - b)", [x, top], x.shape, step="exp")
    total = build.reduced("total", Reduction.SUM, [exponentials], [axis], dtype=sum_dtype(x.dtype), step="sum")
    build.elementwise("a / b", [exponentials, total], y, step="divide")


@onnx_expansion("LogSoftmax", "stable", default=True)
def log_softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = d - log(sum(exp(d)))`` with ``d = X - max(X)`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = build.reduced("largest", Reduction.MAX, [x], [axis], step="max")
    differences = build.computed("differences", "a - b", [x, top], x.shape, step="difference")
    dtype = sum_dtype(x.dtype)
    total = build.reduced("total", Reduction.SUM, [differences], [axis], "exp(a)", dtype=dtype, step="sum")
    build.elementwise("a - log(b)", [differences, total], y, step="subtract")

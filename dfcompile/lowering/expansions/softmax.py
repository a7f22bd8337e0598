"""Softmax along one axis (opset 13 and later), computed relative to the largest element so that nothing overflows."""

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expansions.elementwise import add_elementwise
from dfcompile.lowering.expansions.reduce import add_reduce, kept_shape
from dfcompile.lowering.expressions import sum_dtype


@onnx_expansion("Softmax", "stable", default=True)
def softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = e / sum(e)`` with ``e = exp(X - max(X))`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = _largest(build, x, axis)
    exponentials = build.array("exponentials", x.shape)
    total = build.array("total", top.shape, sum_dtype(x.dtype))
    add_elementwise(build, "exp", "exp(a - b)", [x, top], exponentials)
    add_reduce(build, "sum", Reduction.SUM, [exponentials], total, [axis])
    add_elementwise(build, "divide", "a / b", [exponentials, total], y)


@onnx_expansion("LogSoftmax", "stable", default=True)
def log_softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = d - log(sum(exp(d)))`` with ``d = X - max(X)`` along an axis: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    top = _largest(build, x, axis)
    differences = build.array("differences", x.shape)
    total = build.array("total", top.shape, sum_dtype(x.dtype))
    add_elementwise(build, "difference", "a - b", [x, top], differences)
    add_reduce(build, "sum", Reduction.SUM, [differences], total, [axis], "exp(a)")
    add_elementwise(build, "subtract", "a - log(b)", [differences, total], y)


def _largest(build: CanonicalFragment, x: Tensor, axis: int) -> Tensor:
    top = build.array("largest", kept_shape(x.shape, [axis]))
    add_reduce(build, "max", Reduction.MAX, [x], top, [axis])
    return top

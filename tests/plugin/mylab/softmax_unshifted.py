"""Softmax for operands that are known to be small: nobody looks for the largest element."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


@onnx_expansion("Softmax", "unshifted", source="mylab24")
def unshifted(op: Operator, build: CanonicalFragment) -> None:
    """``Y = e / sum(e)`` with ``e = exp(X)`` along an axis: one downsampler less than the stable one."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    exponentials = build.array("exponentials", x.shape)
    total = build.array("total", (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    build.op("Elementwise", "exp", [x], [exponentials], expression="exp(a)")
    build.op("Reduce", "sum", [exponentials], [total], reduction="SUM", axes=[axis], keepdims=1, expression="a")
    build.op("Elementwise", "divide", [exponentials, total], [y], expression="a / b")

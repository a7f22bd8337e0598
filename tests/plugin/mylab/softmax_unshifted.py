"""Softmax for operands that are known to be small: nobody looks for the largest element."""

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion
from dfcompile.lowering.operators import Elementwise, Reduce


@onnx_expansion("Softmax", "unshifted", source="mylab24")
def unshifted(op: Operator, build: CanonicalFragment) -> None:
    """``Y = e / sum(e)`` with ``e = exp(X)`` along an axis: one downsampler less than the stable one."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    exponentials = build.array("exponentials", x.shape)
    total = build.array("total", (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    build.add(Elementwise("exp(a)"), [x], exponentials, step="exp")
    build.add(Reduce(Reduction.SUM, axes=(axis,)), [exponentials], total, step="sum")
    build.add(Elementwise("a / b"), [exponentials, total], y, step="divide")

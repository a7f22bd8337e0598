"""ONNX CumSum and CumProd: running sums and products."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion


def cumulative(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = sum_k X[…, k, …] if k <= j else 0`` along an axis of n: one downsampler that reads X n times.

    A running sum would read X once, but reads what it writes: no access of a canonical task. Products likewise.
    """
    x, y = op.input(0), op.output()
    (given,) = op.static_integers(1, "axis") or (0,)
    axis = op.front_axis(given, x.rank)
    outer, n, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    build.check_parameter((n, n))
    j, k = np.arange(n)[:, None, None], np.arange(n)[None, :, None]
    first, last = (j, k) if op.integer("reverse", 0) else (k, j)
    is_taken = first < last if op.integer("exclusive", 0) else first <= last
    total = build.array("total", (outer, n, inner))
    data = build.view(x, "data", (outer, 1, n, inner))
    reduction = Reduction.SUM if op.op_type == "CumSum" else Reduction.PRODUCT
    taken = f"a if b else {reduction.initial(x.dtype)}"
    build.reduce(reduction, [data, build.parameter("triangle", is_taken)], total, [2], taken)
    build.view_as(total, y)


EXPANSIONS = tuple(onnx_expansion(op_type, "triangle", default=True)(cumulative) for op_type in ("CumSum", "CumProd"))

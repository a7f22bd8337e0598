"""ONNX OneHot, Trilu, CumSum and CumProd: what constant positions choose."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion


@onnx_expansion("OneHot", "map", default=True)
def one_hot(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = on if indices[…] == j else off``: one element-wise task; a negative index counts from the end."""
    indices, y = op.input(0), op.output()
    (depth,) = op.static_integers(1, "depth") or (0,)
    axis = op.axis(default=-1, rank=y.rank)
    build.check_parameter((depth,))
    is_unsigned = np.dtype(indices.dtype).kind == "u"
    positions = build.parameter("positions", np.arange(depth, dtype=indices.dtype if is_unsigned else np.int64))
    is_here = "a == b" if is_unsigned else f"(a == b or a + {depth} == b)"
    parts = [build.part(name, op.input(2), 0, at, at + 1) for at, name in enumerate(("off", "on"))]
    axes = [[at for at in range(y.rank) if at != axis] or [0], [axis], [0], [0]]
    build.elementwise(f"d if {is_here} else c", [indices, positions, *parts], y, axes=axes)


@onnx_expansion("Trilu", "mask", default=True)
def trilu(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, i, j] = X[…, i, j] if j - i >= k else 0`` (upper, else ``<=``): one task with a constant mask."""
    x, y = op.input(0), op.output()
    (diagonal,) = op.static_integers(1, "k") or (0,)
    build.check_parameter(x.shape[-2:])
    rows, columns = (np.arange(extent) for extent in x.shape[-2:])
    distance = columns[None, :] - rows[:, None]
    inside = distance >= diagonal if op.integer("upper", 1) else distance <= diagonal
    build.elementwise("a if b else 0", [x, build.parameter("mask", inside)], y)


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

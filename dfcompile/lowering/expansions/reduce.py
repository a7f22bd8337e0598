"""ONNX's reductions over axes."""

from collections.abc import Mapping
from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion
from dfcompile.lowering.expressions import substitute, sum_dtype
from dfcompile.lowering.operators import Elementwise


def reduced_axes(op: Operator) -> tuple[int, ...]:
    """Return the axes that an ONNX reduction reduces, sorted; all if none are given.

    Raises:
        UnsupportedOpError: the axes are computed by the model, or outside of the rank.
    """
    rank = op.input(0).rank
    given = op.integers("axes") if "axes" in op.attributes else op.static_integers(1, "axes") or ()
    if not given:
        return () if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(op.front_axis(axis, rank) for axis in given))


_KINDS = {
    # reduction, before it, after it (n = number of elements that are reduced to one)
    "ReduceSum": (Reduction.SUM, "a", "a"),
    "ReduceMean": (Reduction.SUM, "a", "a / n"),
    "ReduceMax": (Reduction.MAX, "a", "a"),
    "ReduceMin": (Reduction.MIN, "a", "a"),
    "ReduceProd": (Reduction.PRODUCT, "a", "a"),
    "ReduceL1": (Reduction.SUM, "abs(a)", "a"),
    "ReduceL2": (Reduction.SUM, "a * a", "sqrt(a)"),
    "ReduceLogSum": (Reduction.SUM, "a", "log(a)"),
    "ReduceSumSquare": (Reduction.SUM, "a * a", "a"),
}


# The sum of whose mean, root or logarithm an integer can hold may be too large for it.
_WIDER: Mapping[str, str] = {"int32": "int64", "uint32": "uint64"}
_OF_REALS = ("sqrt(a)", "log(a)")


def _real_sum(dtype: str) -> str:
    """Return the data type of sums of which a function of real numbers is computed."""
    return "float64" if np.dtype(dtype).kind in "iu" else sum_dtype(dtype)


def _of_real(expression: str, dtype: str) -> str:
    """Compute in double precision what is stored as integers."""
    return substitute(expression, {"a": "dace.float64(a)"}) if np.dtype(dtype).kind in "iu" else expression


def reduction(op: Operator, build: CanonicalFragment) -> None:
    """``Y[kept] = after(reduce over axes of before(X[i, …]))``: a downsampler, and an element-wise task if need be."""
    x, y, axes = op.input(0), op.output(), reduced_axes(op)
    kind, before, after = _KINDS[op.op_type]
    if after in _OF_REALS:
        before = _of_real(before, x.dtype)
    if not axes:
        source = after.replace("a", f"({before})") if after in _OF_REALS else before
        if source == "a":
            build.view_as(x, y)
        else:
            build.elementwise(source, [x], y)
        return
    if after == "a":
        build.reduce(kind, [x], y, axes, before)
        return
    is_mean = after == "a / n"
    dtype = _WIDER.get(x.dtype, sum_dtype(x.dtype)) if is_mean else _real_sum(x.dtype)
    reduced = build.array("reduced", y.shape, dtype)
    build.reduce(kind, [x], reduced, axes, before, step="reduce")
    count = prod(x.shape[axis] for axis in axes)
    build.elementwise(after.replace("n", str(count)) if is_mean else after, [reduced], y, step="finish")


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(reduction) for op_type in _KINDS)


@onnx_expansion("ReduceLogSumExp", "stable", default=True)
def reduce_log_sum_exp(op: Operator, build: CanonicalFragment) -> None:
    """``Y = top + log(sum(exp(X - top)))`` with the largest element ``top``: the exponentials do not overflow."""
    x, y, axes = op.input(0), op.output(), reduced_axes(op)
    if not axes:
        build.view_as(x, y)
        return
    largest = build.reduced("largest", Reduction.MAX, [x], axes, step="max")
    # An infinite maximum would make its own difference undefined.
    top = build.computed("top", "0 if isinf(a) else a", [largest], largest.shape)
    # As onnxruntime, which cuts off what it adds where integers have a sign.
    dtype = sum_dtype(x.dtype) if np.dtype(x.dtype).kind == "i" else _real_sum(x.dtype)
    exponential = _of_real("exp(a - b)", x.dtype)
    total = build.reduced("total", Reduction.SUM, [x, top], axes, exponential, dtype=dtype, step="sum")
    build.add_reshaped(Elementwise("b + log(a)"), [total, top], y, "logarithm", top.shape, step="log")

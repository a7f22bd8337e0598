"""ONNX's global pooling: one element per channel."""

from math import prod

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, onnx_expansion
from dfcompile.lowering.expansions.pooling import norm_expressions
from dfcompile.lowering.expressions import sum_dtype


@onnx_expansion("GlobalMaxPool", "map", default=True)
def global_max_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = max X[b, c, …]``: one downsampler."""
    x, y = op.input(0), op.output()
    build.reduce(Reduction.MAX, [x], y, range(2, x.rank))


@onnx_expansion("GlobalAveragePool", "map", default=True)
def global_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = sum X[b, c, …] / n``: one downsampler, one element-wise task."""
    _sum_and_finish(op, build, "a", f"a / {prod(op.input(0).shape[2:])}")


@onnx_expansion("GlobalLpPool", "map", default=True)
def global_lp_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = (sum |X[b, c, …]| ** p) ** (1/p)``: one downsampler, one element-wise task."""
    _sum_and_finish(op, build, *norm_expressions(op))


def _sum_and_finish(op: Operator, build: CanonicalFragment, before: str, after: str) -> None:
    x, y = op.input(0), op.output()
    dtype = sum_dtype(y.dtype)
    total = build.reduced("total", Reduction.SUM, [x], range(2, x.rank), before, dtype=dtype, step="sum")
    build.elementwise(after, [total], y, step="finish")

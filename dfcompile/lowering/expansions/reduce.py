"""Reductions over axes, ONNX's and the canonical Reduce."""

from collections.abc import Mapping
from math import prod

from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    MapFragment,
    Operator,
    Reduction,
    expansion,
    onnx_expansion,
)
from dfcompile.lowering.expressions import operand_names, sum_dtype
from dfcompile.lowering.operators import Reduce
from dfcompile.lowering.operators.reduce import kept_shape


def reduced_axes(op: Operator) -> tuple[int, ...]:
    """Return the axes that an ONNX reduction reduces, sorted; all if none are given.

    Raises:
        UnsupportedOpError: the axes are computed by the model, outside of the rank, or named twice.
    """
    rank = op.input(0).rank
    given = op.integers("axes") if "axes" in op.attributes else op.static_integers(1, "axes") or ()
    if not given:
        return () if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    axes = sorted(op.front_axis(axis, rank) for axis in given)
    if len(set(axes)) != len(axes):
        raise op.unsupported(f"axes {list(given)} name one axis twice")
    return tuple(axes)


@expansion(Reduce, "map", source="dematteis23", default=True)
def reduce_map(op: CanonicalNode[Reduce], build: MapFragment) -> None:
    """``Y[kept] = reduce over the others of expression(a[i, …], b[i, …], …)``: one downsampler.

    The kept dimensions are the outer loops, in row order; the reduced ones the inner loops.
    """
    operands, result, axes = op.operands(), op.output(), op.operator.axes
    shape = op.operator.full_shape(operands)
    order = [*(axis for axis in range(len(shape)) if axis not in axes), *axes]
    reads = {}
    for name, tensor in zip(operand_names(len(operands)), operands, strict=True):
        first = len(shape) - tensor.rank
        indices = [f"i{first + axis}" if extent > 1 else "0" for axis, extent in enumerate(tensor.shape)]
        reads[name] = (tensor, indices)
    if op.operator.keepdims:
        write = ["0" if axis in axes else f"i{axis}" for axis in range(len(shape))]
    else:
        write = [f"i{axis}" for axis in range(len(shape)) if axis not in axes]
    build.map(
        "",
        loops={f"i{axis}": shape[axis] for axis in order},
        reads=reads,
        write=(result, write),
        code=op.operator.expression,
        accumulate=op.operator.reduction,
    )


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


_WIDER: Mapping[str, str] = {"int32": "int64", "uint32": "uint64"}


def reduction(op: Operator, build: CanonicalFragment) -> None:
    """``Y[kept] = after(reduce over axes of before(X[i, …]))``: a downsampler, and an element-wise task if need be."""
    x, y, axes = op.input(0), op.output(), reduced_axes(op)
    kind, before, after = _KINDS[op.op_type]
    if not axes:
        _nothing_reduced(op, build, before, after)
        return
    if after == "a":
        build.reduce(kind, [x], y, axes, before)
        return
    is_mean = after == "a / n"
    # The sum of whose mean an integer can hold may be too large for it.
    dtype = _WIDER.get(x.dtype, sum_dtype(x.dtype)) if is_mean else sum_dtype(x.dtype)
    reduced = build.array("reduced", y.shape, dtype)
    build.reduce(kind, [x], reduced, axes, before, step="reduce")
    count = prod(x.shape[axis] for axis in axes)
    build.elementwise(after.replace("n", str(count)) if is_mean else after, [reduced], y, step="finish")


def _nothing_reduced(op: Operator, build: CanonicalFragment, before: str, after: str) -> None:
    source = after.replace("a", f"({before})") if after in ("sqrt(a)", "log(a)") else before
    if source == "a":
        build.view_as(op.input(0), op.output())
    else:
        build.elementwise(source, [op.input(0)], op.output())


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(reduction) for op_type in _KINDS)


@onnx_expansion("ReduceLogSumExp", "stable", default=True)
def reduce_log_sum_exp(op: Operator, build: CanonicalFragment) -> None:
    """``Y = top + log(sum(exp(X - top)))`` with the largest element ``top``: the exponentials do not overflow."""
    x, y, axes = op.input(0), op.output(), reduced_axes(op)
    if not axes:
        build.view_as(x, y)
        return
    kept = kept_shape(x.shape, axes)
    largest, top = build.array("largest", kept), build.array("top", kept)
    total = build.array("total", kept, sum_dtype(x.dtype))
    build.reduce(Reduction.MAX, [x], largest, axes, step="max")
    # An infinite maximum would make its own difference undefined.
    build.elementwise("0 if isinf(a) else a", [largest], top, step="top")
    build.reduce(Reduction.SUM, [x, top], total, axes, "exp(a - b)", step="sum")
    logarithm = y if y.shape == kept else build.array("logarithm", kept)
    build.elementwise("b + log(a)", [total, top], logarithm, step="log")
    if logarithm is not y:
        build.view_as(logarithm, y)

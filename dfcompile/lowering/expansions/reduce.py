"""Reductions over axes.

The canonical Reduce has ``reduction`` (SUM, PRODUCT, MAX or MIN), ``axes`` counted from the front, ``keepdims``, and an
``expression`` of its operands ``a``, ``b`` … (broadcast as in numpy) that is computed before the reduction.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, MapFragment, Operator, Reduction, Tensor, expansion, onnx_expansion
from dfcompile.lowering.expansions.elementwise import add_elementwise
from dfcompile.lowering.expressions import operand_names, sum_dtype


def add_reduce(
    build: CanonicalFragment,
    step: str,
    reduction: Reduction,
    operands: Sequence[Tensor],
    result: Tensor,
    axes: Sequence[int],
    expression: str = "a",
) -> None:
    """Add a canonical Reduce; ``keepdims`` is told from the result's shape.

    Args:
        build: the fragment.
        step: see `CanonicalFragment.op`.
        reduction: how elements are combined.
        operands: broadcast to one shape as in numpy.
        result: that shape with extent 1 in the reduced axes, or without these.
        axes: counted from the front.
        expression: of ``a``, ``b`` … for the operands in order.
    """
    keepdims = int(result.shape == kept_shape(_full_shape(operands), axes))
    build.op(
        "Reduce",
        step,
        operands,
        [result],
        reduction=reduction.name,
        axes=list(axes),
        keepdims=keepdims,
        expression=expression,
    )


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with extent 1 in the reduced axes.

    >>> kept_shape((2, 3, 4), [1])
    (2, 1, 4)
    """
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


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


@expansion("Reduce", "map", source="dematteis23", default=True)
def reduce_map(op: Operator, build: MapFragment) -> None:
    """``Y[kept] = reduce over the others of expression(a[i, …], b[i, …], …)``: one downsampler.

    The kept dimensions are the outer loops, in row order; the reduced ones the inner loops.
    """
    operands, result = op.operands(), op.output()
    shape, axes = _full_shape(operands), op.integers("axes")
    order = [*(axis for axis in range(len(shape)) if axis not in axes), *axes]
    reads = {}
    for name, tensor in zip(operand_names(len(operands)), operands, strict=True):
        first = len(shape) - tensor.rank
        indices = [f"i{first + axis}" if extent > 1 else "0" for axis, extent in enumerate(tensor.shape)]
        reads[name] = (tensor, indices)
    if op.integer("keepdims", 1):
        write = ["0" if axis in axes else f"i{axis}" for axis in range(len(shape))]
    else:
        write = [f"i{axis}" for axis in range(len(shape)) if axis not in axes]
    build.map(
        "",
        loops={f"i{axis}": shape[axis] for axis in order},
        reads=reads,
        write=(result, write),
        code=op.text("expression", "a"),
        accumulate=Reduction[op.text("reduction", "SUM")],
    )


def _full_shape(operands: Sequence[Tensor]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*(tensor.shape for tensor in operands)))


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
        add_reduce(build, "", kind, [x], y, axes, before)
        return
    is_mean = after == "a / n"
    # The sum of whose mean an integer can hold may be too large for it.
    dtype = _WIDER.get(x.dtype, sum_dtype(x.dtype)) if is_mean else sum_dtype(x.dtype)
    reduced = build.array("reduced", y.shape, dtype)
    add_reduce(build, "reduce", kind, [x], reduced, axes, before)
    count = prod(x.shape[axis] for axis in axes)
    add_elementwise(build, "finish", after.replace("n", str(count)) if is_mean else after, [reduced], y)


def _nothing_reduced(op: Operator, build: CanonicalFragment, before: str, after: str) -> None:
    source = after.replace("a", f"({before})") if after in ("sqrt(a)", "log(a)") else before
    if source == "a":
        build.view_as(op.input(0), op.output())
    else:
        add_elementwise(build, "", source, [op.input(0)], op.output())


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
    add_reduce(build, "max", Reduction.MAX, [x], largest, axes)
    # An infinite maximum would make its own difference undefined.
    add_elementwise(build, "top", "0 if isinf(a) else a", [largest], top)
    add_reduce(build, "sum", Reduction.SUM, [x, top], total, axes, "exp(a - b)")
    logarithm = y if y.shape == kept else build.array("logarithm", kept)
    add_elementwise(build, "log", "b + log(a)", [total, top], logarithm)
    if logarithm is not y:
        build.view_as(logarithm, y)

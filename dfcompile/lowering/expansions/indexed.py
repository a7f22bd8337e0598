"""Gathering and scattering: elements and rows at indices that are constant or computed, ONNX and canonical."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dfcompile.distinct import distinct
from dfcompile.frontend import NARROW_REALS
from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.map_fragment import along, loops_over
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators import Gather, Lookup, LookupElements, Scatter, Update
from dfcompile.lowering.operators.movement import Run

MOST_RUNS = 64  # arithmetic progressions of indices, a task each; with more, one task looks its indices up


@onnx_expansion("Gather", "runs", default=True)
def gather(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = X[…, indices[j], …]``: constant indices give one task per arithmetic progression of them.

    Indices that the model computes, or that need too many progressions, are looked up.
    """
    x, y, axis = op.input(0), op.output(), op.axis()
    indices = constant_indices(op, axis)
    runs = () if indices is None else few_progressions(indices)
    if indices is None or not runs:
        build.add(Lookup(axis), [x, op.input(1)], y)
        return
    shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    build.add_reshaped(Gather(axis, runs), [x], y, "gathered", shape)


def constant_indices(op: Operator, axis: int) -> npt.NDArray[np.int64] | None:
    """Return the indices in operand 1 along an axis, flat and not negative; None if the model computes them."""
    value = op.input(1).value
    return None if value is None else np.ravel(value).astype(np.int64) % op.input(0).shape[axis]


def few_progressions(indices: npt.NDArray[np.generic]) -> tuple[Run, ...]:
    """Return the progressions that indices ``[n]`` follow; none if there are more than `MOST_RUNS`."""
    bends = np.count_nonzero(np.diff(indices.astype(np.int64), 2))  # at most two from a progression to the next
    runs = () if bends > 2 * MOST_RUNS else progressions([int(index) for index in indices])
    return runs if len(runs) <= MOST_RUNS else ()


def progressions(indices: Sequence[int]) -> tuple[Run, ...]:
    """Cut indices into arithmetic progressions ``(first, step, count)``, each as long as possible from the left.

    >>> progressions([0, 2, 4, 3, 2, 7])
    ((0, 2, 3), (3, -1, 2), (7, 1, 1))
    """
    runs = []
    start = 0
    while start < len(indices):
        count = 1
        step = indices[start + 1] - indices[start] if start + 1 < len(indices) else 1
        while start + count < len(indices) and indices[start + count] - indices[start + count - 1] == step:
            count += 1
        runs.append((indices[start], step if count > 1 else 1, count))
        start += count
    return tuple(runs)


@expansion(Gather, "runs", source="onnx", default=True)
def gather_runs(op: CanonicalNode[Gather], build: MapFragment) -> None:
    """``Y[…, offset + j, …] = X[…, first + step * j, …]``: one task per run."""
    x, y, axis, runs = op.input(0), op.output(), op.operator.axis, op.operator.runs
    offset = 0
    for position, (first, step, count) in enumerate(runs):
        loops, name = loops_over(y.shape) | {f"i{axis}": count}, f"run{position}" if len(runs) > 1 else ""
        build.map(name, loops=loops, reads={"x": along(x, axis, first, step)}, write=along(y, axis, offset), code="x")
        offset += count


@onnx_expansion("GatherElements", "lookup", default=True)
def gather_elements(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, j, …] = X[i, indices[i, j, …], …]`` along an axis: one task that reads X from memory."""
    build.add(LookupElements(op.axis()), [op.input(0), op.input(1)], op.output())


@expansion(LookupElements, "map", source="onnx", default=True)
def lookup_elements(op: CanonicalNode[LookupElements], build: MapFragment) -> None:
    """``Y[i…] = X[i… with indices[i…] at the axis]``: one task in row order; a negative index counts from the end."""
    axis = op.operator.axis
    _look_up(op, build, axis, slice(None), slice(axis + 1, None))


@expansion(Lookup, "map", source="onnx", default=True)
def lookup(op: CanonicalNode[Lookup], build: MapFragment) -> None:
    """``Y[…, j…, …] = X[…, indices[j…], …]`` with the indices at ``axis``: one task that reads X from memory.

    A negative index counts from the end.
    """
    axis = op.operator.axis
    after_axis = axis + op.output().rank - op.input(0).rank + 1
    _look_up(op, build, axis, slice(axis, after_axis), slice(after_axis, None))


def _look_up(op: Node, build: MapFragment, axis: int, of_indices: slice, after_axis: slice) -> None:
    """Add the task that reads an index, then X there; slices of its loops index the indices, and X after its axis."""
    x, indices, y = op.input(0), op.input(1), op.output()
    loops, extent = loops_over(y.shape), x.shape[axis]
    names = list(loops)
    place = ", ".join([*names[:axis], f"(index + {extent}) % {extent}", *names[after_axis]])
    reads, write = {"index": (indices, names[of_indices])}, (y, names)
    build.map("", loops=loops, reads=reads, tables={"table": x}, write=write, code=f"table[{place}]")


@onnx_expansion("GatherND", "rows", default=True)
def gather_nd(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b…, u…] = X[b…, indices[b…, u…]]``: rows of X at linear indices, which one task computes beforehand."""
    x, indices, batch = op.input(0), op.input(1), op.integer("batch_dims", 0)
    leading = batch + indices.shape[-1]
    _take_rows(op, build, flat_rows(build, indices, x.shape[:leading], batch), leading)


@onnx_expansion("ReverseSequence", "rows", default=True)
def reverse_sequence(op: Operator, build: CanonicalFragment) -> None:
    """``Y[t, b] = X[lengths[b] - 1 - t if t < lengths[b] else t, b]``: rows at linear indices, computed beforehand."""
    x, lengths = op.input(0), op.input(1)
    batch_axis, time_axis = op.axis("batch_axis", 1), op.axis("time_axis", 0)
    steps, batches = (x.shape[axis] for axis in (time_axis, batch_axis))
    step, between = (batches, 1) if time_axis == 0 else (1, steps)
    times, starts = np.arange(steps), np.arange(batches) * between
    if lengths.value is not None:
        last = np.asarray(lengths.value).reshape(-1, 1) - 1
        sources = np.where(times <= last, last - times, times) * step + starts[:, None]
        rows = build.parameter("rows", (sources.T if time_axis == 0 else sources).astype(np.int64).reshape(-1))
    else:
        operands = [lengths, build.parameter("times", times), build.parameter("starts", starts)]
        code, axes = f"(a - 1 - b if b < a else b) * {step} + c", [[batch_axis], [time_axis], [batch_axis]]
        row = build.computed("row", code, operands, x.shape[:2], "int64", axes=axes, step="rows")
        rows = build.view(row, "rows", (row.elements,))
    _take_rows(op, build, rows, 2)


def flat_rows(build: CanonicalFragment, indices: Tensor, extents: Sequence[int], batch: int) -> Tensor:
    """Return the linear number of each row that tuples of indices name, ``[n]``; constant if the indices are.

    Args:
        build: of the operator.
        indices: ``[b…, u…, k]``, each counted from the end if it is negative.
        extents: of the dimensions ``b…``, then of the k dimensions that are indexed.
        batch: how many dimensions b there are.
    """
    sizes, count = np.array(extents[batch:], np.int64), prod(indices.shape[:-1])
    strides = np.array([prod(extents[axis + 1 :]) for axis in range(batch, len(extents))], np.int64)
    offsets = np.arange(prod(extents[:batch]), dtype=np.int64) * prod(extents[batch:])
    shape = (len(offsets), count // len(offsets), len(sizes))
    if indices.value is not None:
        tuples = np.asarray(indices.value).reshape(shape)
        return build.parameter("rows", ((tuples % sizes) * strides).sum(axis=2).reshape(-1) + offsets.repeat(shape[1]))
    if len(extents) == 1:
        return build.view(indices, "rows", (count,))
    # The first row of each batch is added once, with the last index of a tuple.
    starts = np.zeros((len(offsets), 1, len(sizes)), np.int64)
    starts[:, 0, -1] = offsets
    operands = [build.view(indices, "indices", shape), build.parameter("extents", sizes)]
    operands += [build.parameter("strides", strides), build.parameter("starts", starts)]
    rows = build.array("row", shape[:2], "int64")
    build.reduce(Reduction.SUM, operands, rows, [2], "((a + b) % b) * c + d", step="rows")
    return build.view(rows, "rows", (count,))


def _take_rows(op: Operator, build: CanonicalFragment, rows: Tensor, leading: int) -> None:
    """Write rows of X, each with one place in the leading dimensions, which are numbered together."""
    x, y = op.input(0), op.output()
    inner = prod(x.shape[leading:])
    table = build.view(x, "table", (prod(x.shape[:leading]), inner))
    runs, shape = () if rows.value is None else few_progressions(rows.value), (rows.elements, inner)
    if runs:
        taken = build.made("taken", Gather(0, runs), [table], shape, step="gather")
    else:
        taken = build.made("taken", Lookup(0), [table, rows], shape, step="lookup")
    build.view_as(taken, y)


Values: TypeAlias = npt.NDArray[np.generic]
_NAMES = {"add": Reduction.SUM, "mul": Reduction.PRODUCT, "max": Reduction.MAX, "min": Reduction.MIN}
_REDUCTIONS: Mapping[str, Reduction | None] = {"none": None, **_NAMES}


@onnx_expansion("ScatterND", "rows", default=True)
def scatter_nd(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[indices[u…], …] = U[u…, …]``: run by run at constant indices, else one task writes in memory.

    An assigned slice, such as a key in a cache, is one run. Computed indices are made linear first.
    """
    x, indices, updates, y = op.input(0), op.input(1), op.input(2), op.output()
    leading = indices.shape[-1]
    inner = prod(x.shape[leading:])
    rows = flat_rows(build, indices, x.shape[:leading], 0)
    table = build.view(x, "table", (prod(x.shape[:leading]), inner))
    operands = [table, rows, build.view(updates, "updates", (rows.elements, inner))]
    _write_rows(op, build, operands, y, 0, (0,))


def scatter_elements(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[i, indices[i, j…], …] = U[i, j, …]`` along an axis: one task copies, one writes in memory.

    Constant indices that are the same along all other axes, such as an assigned slice, are written run by run.
    """
    x, indices, updates, axis = op.input(0), op.input(1), op.input(2), op.axis()
    constant, others = constant_indices(op, axis), [dim for dim in range(x.rank) if dim != axis]
    if constant is not None and all(indices.shape[dim] == x.shape[dim] for dim in others):
        lines = np.moveaxis(constant.reshape(indices.shape), axis, -1).reshape(-1, indices.shape[axis])
        if _add_runs(op, build, lines, [x, updates], op.output(), axis):
            return
    _combine(op, build, [x, indices, updates], op.output(), axis, tuple(range(x.rank)))


_SCATTERS = ("Scatter", "ScatterElements")
EXPANSIONS = tuple(onnx_expansion(op_type, "update", default=True)(scatter_elements) for op_type in _SCATTERS)


@onnx_expansion("TensorScatter", "update", default=True)
def tensor_scatter(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[b, …, start[b] + s, …] = U[b, …, s, …]`` along an axis; circular indices wrap at its end."""
    x, updates, y = op.input(0), op.input(1), op.output()
    axis = op.axis(default=-2)
    mode = op.choice("mode", "linear", ("linear", "circular"), "'linear' or 'circular'")
    batch, steps, extent = x.shape[0], updates.shape[axis], x.shape[axis]
    outer, inner = prod(x.shape[1:axis]), prod(x.shape[axis + 1 :])
    starts, positions = op.optional_input(2), np.arange(steps)
    if starts is None or starts.value is not None:
        first = np.zeros(batch, np.int64) if starts is None else np.asarray(starts.value)
        places = first[:, None] + positions
        if (first < 0).any() or (mode == "linear" and (places >= extent).any()):
            raise op.unsupported(f"places {places.min()} to {places.max()} of axis {axis} of extent {extent}")
        rows = build.parameter("rows", places % extent)
    else:
        place, axes = "a + b" if mode == "linear" else f"(a + b) % {extent}", [[0], [1]]
        operands = [starts, build.parameter("positions", positions)]
        rows = build.computed("rows", place, operands, (batch, steps), "int64", axes=axes)
    cache = build.view(x, "cache", (batch, outer, extent, inner))
    operands = [cache, rows, build.view(updates, "updates", (batch, outer, steps, inner))]
    _write_rows(op, build, operands, y, 2, (0, 2))


def _write_rows(
    op: Operator, build: CanonicalFragment, operands: Sequence[Tensor], y: Tensor, axis: int, index_axes: Sequence[int]
) -> None:
    """Write whole rows along an axis: run by run if all indices are constant, different and the same for every row."""
    x, indices, updates = operands
    written = build.array("written", x.shape)
    lines = None if indices.value is None else indices.value.reshape(-1, indices.shape[-1])
    if lines is None or not _add_runs(op, build, lines, [x, updates], written, axis):
        _combine(op, build, operands, written, axis, index_axes)
    build.view_as(written, y)


def _add_runs(
    op: Operator, build: CanonicalFragment, lines: Values, operands: Sequence[Tensor], y: Tensor, axis: int
) -> bool:
    """Write run by run at constant indices, if few runs, the same in all lines, name no place twice; tell whether so.

    If every place is written, nothing of the data is left: the updates are gathered in the order of their places.
    """
    x, updates = operands
    places = lines[0]
    is_overwritten = len(distinct(places)) < len(places)
    if op.text("reduction", "none") != "none" or is_overwritten or not (lines == places).all():
        return False
    is_whole = len(places) == x.shape[axis]
    runs = few_progressions(np.argsort(places) if is_whole else places)
    if runs and is_whole:
        build.add(Gather(axis, runs), [updates], y, step="write")
    elif runs:
        build.add(Scatter(axis, runs), operands, y, step="write")
    return bool(runs)


def _combine(
    op: Operator, build: CanonicalFragment, operands: Sequence[Tensor], y: Tensor, axis: int, index_axes: Sequence[int]
) -> None:
    """Write at indices, or combine as attribute ``reduction`` says; narrow real numbers are combined in float32."""
    x, indices, updates = operands
    name = op.choice("reduction", "none", _REDUCTIONS)
    reduction = _REDUCTIONS[name]
    if reduction is not None and x.dtype == "bool":
        raise op.unsupported(f"attribute 'reduction' is {name!r} of truth values against numbers")
    update = Update(axis, tuple(index_axes), reduction)
    if reduction is None or x.dtype not in NARROW_REALS:
        build.add(update, [x, indices, updates], y, step="update")
        return
    wide = [
        build.computed(f"wide_{name}", "dace.float32(a)", [tensor], tensor.shape, "float32", step=f"wide_{step}")
        for name, step, tensor in (("x", "data", x), ("u", "updates", updates))
    ]
    combined = build.made("wide_y", update, [wide[0], indices, wide[1]], y.shape, "float32", step="update")
    build.elementwise("dace.float32(a)", [combined], y, step="narrow")


@expansion(Scatter, "runs", source="onnx", default=True)
def scatter_runs(op: CanonicalNode[Scatter], build: MapFragment) -> None:
    """One task copies the data, then one per run overwrites its places."""
    updates, y, axis, runs = op.input(1), op.output(), op.operator.axis, op.operator.runs
    _copy(build, op)
    offset = 0
    for position, (first, step, count) in enumerate(runs):
        name, loops = f"run{position}" if len(runs) > 1 else "write", loops_over(y.shape) | {f"i{axis}": count}
        reads, write = {"u": along(updates, axis, offset)}, along(y, axis, first, step)
        build.map(name, loops=loops, reads=reads, write=write, code="u", after_write=True)
        offset += count


@expansion(Update, "map", source="onnx", default=True)
def update(op: CanonicalNode[Update], build: MapFragment) -> None:
    """One task copies the data, a second one writes each update to its place in memory, or combines it there.

    An index counts from the end if it is negative. Memory combines by itself: the element that an update
    is combined with does not count as read.
    """
    indices, updates, y, axis = op.input(1), op.input(2), op.output(), op.operator.axis
    _copy(build, op)
    loops = loops_over(updates.shape)
    names, place = list(loops), list(loops)
    place[axis] = f"(index + {y.shape[axis]}) % {y.shape[axis]}"
    reads = {"index": (indices, [names[at] for at in op.operator.index_axes]), "u": (updates, names)}
    write, total = (y, place), op.operator.reduction
    build.map(
        "update", loops=loops, reads=reads, write=write, code="u", accumulate=total, after_write=True, scattered=True
    )


def _copy(build: MapFragment, op: CanonicalNode[Scatter] | CanonicalNode[Update]) -> None:
    x, y = op.input(0), op.output()
    loops = loops_over(y.shape)
    build.map("copy", loops=loops, reads={"x": (x, list(loops))}, write=(y, list(loops)), code="x")

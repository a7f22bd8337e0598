"""ONNX ScatterND, ScatterElements, TensorScatter; canonical Scatter and Update: other elements at some places."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dfcompile.distinct import distinct
from dfcompile.frontend import NARROW_REALS
from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expansions.gather import constant_indices, few_progressions, flat_rows
from dfcompile.lowering.map_fragment import along, loops_over
from dfcompile.lowering.operators import Gather, Scatter, Update

Values: TypeAlias = npt.NDArray[np.generic]
_NAMES = {"add": Reduction.SUM, "mul": Reduction.PRODUCT, "max": Reduction.MAX, "min": Reduction.MIN}
_REDUCTIONS: Mapping[str, Reduction | None] = {"none": None, **_NAMES}


@onnx_expansion("ScatterND", "rows", default=True)
def scatter_nd(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[indices[u…], …] = U[u…, …]``: constant places are written run by run, others where they are.

    A slice that is assigned, such as a key in a cache, is one run. Indices that the model computes become linear ones.
    """
    x, indices, updates, y = op.input(0), op.input(1), op.input(2), op.output()
    within = indices.shape[-1]
    inner = prod(x.shape[within:])
    rows = flat_rows(build, indices, x.shape[:within], 0)
    table = build.view(x, "table", (prod(x.shape[:within]), inner))
    operands = [table, rows, build.view(updates, "updates", (rows.elements, inner))]
    _write_rows(op, build, operands, y, 0, (0,))


def scatter_elements(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[i, indices[i, j…], …] = U[i, j, …]`` along an axis: one task copies, one writes in memory.

    Constant indices that write the same rows everywhere, such as a slice that is assigned, are written run by run.
    """
    x, indices, updates, axis = op.input(0), op.input(1), op.input(2), op.axis()
    known, others = constant_indices(op, axis), [at for at in range(x.rank) if at != axis]
    if known is not None and all(indices.shape[at] == x.shape[at] for at in others):
        lines = np.moveaxis(known.reshape(indices.shape), axis, -1).reshape(-1, indices.shape[axis])
        if _add_runs(op, build, lines, [x, updates], op.output(), axis):
            return
    _combine(op, build, [x, indices, updates], op.output(), axis, tuple(range(x.rank)))


_SCATTERS = ("Scatter", "ScatterElements")
EXPANSIONS = tuple(onnx_expansion(op_type, "update", default=True)(scatter_elements) for op_type in _SCATTERS)


@onnx_expansion("TensorScatter", "update", default=True)
def tensor_scatter(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` but ``Y[b, …, start[b] + s, …] = U[b, …, s, …]`` along an axis, around its end if that is circular."""
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
    """Write at few runs of constant places, if they are the same in all lines, and different; return whether it was.

    Where all places are written, nothing is left of the data: the updates are put into another order.
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
    """Write at indices, and combine as the attribute says; what is narrower is combined in single precision."""
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
        build.computed(f"wide_{name}", "dace.float32(a)", [each], each.shape, "float32", step=f"wide_{step}")
        for name, step, each in (("x", "data", x), ("u", "updates", updates))
    ]
    found = build.made("wide_y", update, [wide[0], indices, wide[1]], y.shape, "float32", step="update")
    build.elementwise("dace.float32(a)", [found], y, step="narrow")


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

    An index counts from the end if it is negative. What an update is combined with is not counted as read: the memory
    that combines does not send it.
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

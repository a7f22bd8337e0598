"""ONNX Gather, and the canonical Gather, whose indices are constant."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.operators import Gather, Lookup
from dfcompile.lowering.operators.indexed import Run

MOST_RUNS = 64  # a task each; beyond, one task that looks its indices up


@onnx_expansion("Gather", "runs", default=True)
def gather(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = X[…, indices[j], …]``: constant indices give one task per arithmetic progression of them.

    Indices that the model computes, or that follow no few progressions, are looked up.
    """
    x, y, axis = op.input(0), op.output(), op.axis()
    indices = np.array(() if op.input(1).value is None else op.static_integers(1, "indices") or (), np.int64)
    extent = x.shape[axis]
    if ((indices < -extent) | (indices >= extent)).any():
        raise op.unsupported(f"indices outside of axis {axis} of extent {extent}")
    runs = few_progressions(indices % extent)
    if not runs:
        build.add(Lookup(axis), [x, op.input(1)], y)
        return
    shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    build.add_reshaped(Gather(axis, runs), [x], y, "gathered", shape)


def few_progressions(indices: npt.NDArray[np.generic]) -> tuple[Run, ...]:
    """Return the progressions that indices ``[n]`` follow; none if these are so many that a task looks indices up."""
    bends = np.count_nonzero(np.diff(indices.astype(np.int64), 2))  # two, at most, where one ends and the next begins
    runs = () if bends > 2 * MOST_RUNS else progressions([int(index) for index in indices])
    return runs if len(runs) <= MOST_RUNS else ()


def progressions(indices: Sequence[int]) -> tuple[Run, ...]:
    """Cut indices into arithmetic progressions ``(first, step, count)``, each as long as possible from the left.

    >>> progressions([0, 2, 4, 3, 2, 7])
    ((0, 2, 3), (3, -1, 2), (7, 1, 1))
    """
    runs = []
    at = 0
    while at < len(indices):
        count = 1
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 1
        while at + count < len(indices) and indices[at + count] - indices[at + count - 1] == step:
            count += 1
        runs.append((indices[at], step if count > 1 else 1, count))
        at += count
    return tuple(runs)


@expansion(Gather, "runs", source="onnx", default=True)
def gather_runs(op: CanonicalNode[Gather], build: MapFragment) -> None:
    """``Y[…, offset + j, …] = X[…, first + step * j, …]``: one task per run."""
    x, y, axis, runs = op.input(0), op.output(), op.operator.axis, op.operator.runs
    offset = 0
    for position, (first, step, count) in enumerate(runs):
        extents = [count if at == axis else extent for at, extent in enumerate(y.shape)]
        loops = {f"i{at}": extent for at, extent in enumerate(extents)}
        read = [f"{first} + {step}*{name}" if at == axis else name for at, name in enumerate(loops)]
        write = [f"{offset} + {name}" if at == axis else name for at, name in enumerate(loops)]
        name = f"run{position}" if len(runs) > 1 else ""
        build.map(name, loops=loops, reads={"x": (x, read)}, write=(y, write), code="x")
        offset += count

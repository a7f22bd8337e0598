"""ONNX Gather, and the canonical Gather, whose indices are constant."""

from collections.abc import Sequence

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.operators import Gather, Lookup

_MOST_RUNS = 64  # a task each; beyond, one task that looks its indices up


@onnx_expansion("Gather", "runs", default=True)
def gather(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = X[…, indices[j], …]``: constant indices give one task per arithmetic progression of them.

    Indices that the model computes, or that follow no few progressions, are looked up.
    """
    x, y, axis = op.input(0), op.output(), op.axis()
    indices = () if op.input(1).value is None else op.static_integers(1, "indices") or ()
    extent = x.shape[axis]
    if any(not -extent <= index < extent for index in indices):
        raise op.unsupported(f"indices outside of axis {axis} of extent {extent}")
    runs = progressions([index % extent for index in indices])
    if op.input(1).value is None or len(runs) > _MOST_RUNS:
        build.add(Lookup(axis), [x, op.input(1)], y)
        return
    shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    gathered = y if y.shape == shape else build.array("gathered", shape)
    build.add(Gather(axis, runs), [x], gathered)
    if gathered is not y:
        build.view_as(gathered, y)


def progressions(indices: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
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
        build.map(
            f"run{position}" if len(runs) > 1 else "", loops=loops, reads={"x": (x, read)}, write=(y, write), code="x"
        )
        offset += count

"""The canonical Scatter and Update: an array with other elements at some places."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.operators import Scatter, Update


@expansion(Scatter, "runs", source="onnx", default=True)
def scatter_runs(op: CanonicalNode[Scatter], build: MapFragment) -> None:
    """One task copies the data, then one per run overwrites its places."""
    updates, y, axis, runs = op.input(1), op.output(), op.operator.axis, op.operator.runs
    _copy(build, op)
    offset = 0
    for position, (first, step, count) in enumerate(runs):
        loops = {f"i{at}": count if at == axis else extent for at, extent in enumerate(y.shape)}
        read = [f"{offset} + {name}" if at == axis else name for at, name in enumerate(loops)]
        write = [f"{first} + {step}*{name}" if at == axis else name for at, name in enumerate(loops)]
        build.map(
            f"run{position}" if len(runs) > 1 else "write",
            loops=loops,
            reads={"u": (updates, read)},
            write=(y, write),
            code="u",
            after_write=True,
        )
        offset += count


@expansion(Update, "map", source="onnx", default=True)
def update(op: CanonicalNode[Update], build: MapFragment) -> None:
    """One task copies the data, a second one writes each update to its place in memory, or combines it there.

    An index counts from the end if it is negative. What an update is combined with is not counted as read: the memory
    that combines does not send it.
    """
    indices, updates, y, axis = op.input(1), op.input(2), op.output(), op.operator.axis
    _copy(build, op)
    loops = {f"i{at}": extent for at, extent in enumerate(updates.shape)}
    names = list(loops)
    place = list(names)
    place[axis] = f"(index + {y.shape[axis]}) % {y.shape[axis]}"
    build.map(
        "update",
        loops=loops,
        reads={"index": (indices, [names[at] for at in op.operator.index_axes]), "u": (updates, names)},
        write=(y, place),
        code="u",
        accumulate=op.operator.reduction,
        after_write=True,
        scattered=True,
    )


def _copy(build: MapFragment, op: CanonicalNode[Scatter] | CanonicalNode[Update]) -> None:
    x, y = op.input(0), op.output()
    loops = {f"i{at}": extent for at, extent in enumerate(y.shape)}
    build.map("copy", loops=loops, reads={"x": (x, list(loops))}, write=(y, list(loops)), code="x")

"""The canonical Lookup: rows of a table at indices that are only known when the model runs, as of an embedding."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.operators import Lookup


@expansion(Lookup, "map", source="onnx", default=True)
def lookup(op: CanonicalNode[Lookup], build: MapFragment) -> None:
    """``Y[…, j…, …] = X[…, indices[j…], …]`` with the indices at ``axis``: one task that reads X from memory.

    A negative index counts from the end.
    """
    x, indices, y, axis = op.input(0), op.input(1), op.output(), op.operator.axis
    rank = y.rank - x.rank + 1  # of the indices
    loops = {f"i{at}": extent for at, extent in enumerate(y.shape)}
    names = list(loops)
    wanted = names[axis : axis + rank]
    extent = x.shape[axis]
    place = [*names[:axis], f"(index + {extent}) % {extent}", *names[axis + rank :]]
    build.map(
        "",
        loops=loops,
        reads={"index": (indices, wanted)},
        tables={"table": x},
        write=(y, names),
        code=f"table[{', '.join(place)}]",
    )

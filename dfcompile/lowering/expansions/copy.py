"""The canonical Copy: every element read from one place and written to another."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.operators import Copy


@expansion(Copy, "map", source="dematteis23", default=True)
def copy(op: CanonicalNode[Copy], build: MapFragment) -> None:
    """``Y[write(i)] = X[read(i)]``: one element-wise task in the order of the loops."""
    x, y = op.input(0), op.output()
    loops = op.operator.extents(y)
    read = tuple(loops) if op.operator.read is None else op.operator.read
    write = tuple(loops) if op.operator.write is None else op.operator.write
    build.map("", loops=loops, reads={"a": (x, read)}, write=(y, write), code="a")

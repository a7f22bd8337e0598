"""Copies: every element read from one place and written to another, by affine index expressions.

The canonical Copy has the attributes ``loops`` (extents of ``i0``, ``i1`` …, outer to inner), ``read`` and ``write``
(one expression per dimension); without them it copies element by element in row order.
"""

from dfcompile.lowering import MapFragment, Operator, expansion


@expansion("Copy", "map", source="dematteis23", default=True)
def copy(op: Operator, build: MapFragment) -> None:
    """``Y[write(i)] = X[read(i)]``: one element-wise task in the order of the loops."""
    extents = op.integers("loops", op.output().shape)
    loops = {f"i{axis}": extent for axis, extent in enumerate(extents)}
    read = op.texts("read") if "read" in op.attributes else tuple(loops)
    write = op.texts("write") if "write" in op.attributes else tuple(loops)
    build.map("", loops=loops, reads={"a": (op.input(0), read)}, write=(op.output(), write), code="a")

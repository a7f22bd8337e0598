"""ONNX Expand and Tile: elements repeated."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.operators import Copy


@onnx_expansion("Expand", "copy", default=True)
def expand(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = X[i or 0, …]``: one upsampler; a view if nothing is repeated."""
    x, y = op.input(0), op.output()
    if x.elements == y.elements:
        build.view_as(x, y)
        return
    first = y.rank - x.rank
    read = tuple(f"i{first + axis}" if extent > 1 else "0" for axis, extent in enumerate(x.shape))
    build.add(Copy(read=read), [x], y)


@onnx_expansion("Tile", "copy", default=True)
def tile(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n * r + i, …] = X[i, …]`` for every repetition r of an axis of extent n: one upsampler."""
    x, y = op.input(0), op.output()
    if x.elements == y.elements:
        build.view_as(x, y)
        return
    repeats = [total // extent for total, extent in zip(y.shape, x.shape, strict=True)]
    # Loops: repetition and position of axis 0, of axis 1, …: the row order of the result.
    loops = tuple(count for axis in range(x.rank) for count in (repeats[axis], x.shape[axis]))
    read = tuple(f"i{2 * axis + 1}" for axis in range(x.rank))
    write = tuple(f"{extent}*i{2 * axis} + i{2 * axis + 1}" for axis, extent in enumerate(x.shape))
    build.add(Copy(loops, read, write), [x], y)

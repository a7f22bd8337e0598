"""The canonical Window: a reduction over windows of the spatial dimensions of ``X[b, c, …]``."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.expansions.own_loops import add_scope
from dfcompile.lowering.operators import Window


@expansion(Window, "rows", source="dematteis23", default=True)
def window_rows(op: CanonicalNode[Window], build: MapFragment) -> None:
    """``Y[b, c, y…] = reduce_k X[b, c, stride*y + dilation*k …]``: one downsampler.

    Where the windows tile the data, every element is read once, in row order, so that the data can stream. Where they
    overlap or leave something out, the data is in memory anyway, and the loops over a window are the innermost ones:
    every result is complete at once and can stream.
    """
    given, data, counts = op.operator, op.input(0).shape[2:], op.output().shape[2:]
    pairs = [(f"y{axis}", f"k{axis}") for axis in range(len(counts))]
    ordered = pairs if tiles(given, data, counts) else zip(*pairs, strict=True)
    order = ["b", "c", *(name for names in ordered for name in names)]
    add_scope(op, build, given.expression, given.reduction, order)


def tiles(window: Window, data: tuple[int, ...], counts: tuple[int, ...]) -> bool:
    """Whether every element of the spatial dimensions is in exactly one window, elements of a window side by side."""
    axes = zip(data, window.kernel, window.strides, window.dilations, counts, strict=True)
    return all(
        extent == kernel * count and (kernel == 1 or dilation == 1) and (count == 1 or kernel == stride)
        for extent, kernel, stride, dilation, count in axes
    )

"""The canonical Window: a reduction over windows of the spatial dimensions of ``X[b, c, …]``."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.operators import Window
from dfcompile.lowering.windows import Windows


@expansion(Window, "rows", source="dematteis23", default=True)
def window_rows(op: CanonicalNode[Window], build: MapFragment) -> None:
    """``Y[b, c, y…] = reduce_k X[b, c, stride*y + dilation*k …]``: one downsampler.

    Where the windows tile the data, every element is read once, in row order, so that the data can stream. Where they
    overlap or leave something out, the data is in memory anyway, and the loops over a window are the innermost ones:
    every result is complete at once and can stream.
    """
    x, y, given = op.input(0), op.output(), op.operator
    windows = Windows(given.kernel, given.strides, given.dilations, (), (), y.shape[2:])
    positions = dict(zip(windows.window_names, windows.counts, strict=True))
    elements = dict(zip(windows.kernel_names, windows.kernel, strict=True))
    loops = {"b": y.shape[0], "c": y.shape[1]}
    if tiles(windows, x.shape[2:]):
        for window, element in zip(positions, elements, strict=True):
            loops |= {window: positions[window], element: elements[element]}
    else:
        loops |= positions | elements
    build.map(
        "",
        loops=loops,
        reads={"a": (x, ["b", "c", *windows.positions()])},
        write=(y, ["b", "c", *windows.window_names]),
        code=given.expression,
        accumulate=given.reduction,
    )


def tiles(windows: Windows, shape: tuple[int, ...]) -> bool:
    """Whether every element of the spatial dimensions is in exactly one window, elements of a window side by side."""
    return all(
        extent == kernel * count and (kernel == 1 or dilation == 1) and (count == 1 or kernel == stride)
        for extent, kernel, stride, dilation, count in zip(
            shape, windows.kernel, windows.strides, windows.dilations, windows.counts, strict=True
        )
    )

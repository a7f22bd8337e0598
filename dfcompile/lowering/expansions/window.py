"""The canonical Window: a reduction over windows of the spatial dimensions of ``X[b, c, …]``.

It has ``reduction`` (SUM, PRODUCT, MAX or MIN), ``kernel``, ``strides`` and ``dilations`` (one entry per spatial
dimension), and an ``expression`` of the element ``a`` that is computed before the reduction.
"""

from dfcompile.lowering import MapFragment, Operator, Reduction, expansion
from dfcompile.lowering.windows import Windows


@expansion("Window", "rows", source="dematteis23", default=True)
def window_rows(op: Operator, build: MapFragment) -> None:
    """``Y[b, c, y…] = reduce_k X[b, c, stride*y + dilation*k …]``: one downsampler.

    Where the windows tile the data, every element is read once, in row order, so that the data can stream. Where they
    overlap or leave something out, the data is in memory anyway, and the loops over a window are the innermost ones:
    every result is complete at once and can stream.
    """
    x, y = op.input(0), op.output()
    windows = Windows(op.integers("kernel"), op.integers("strides"), op.integers("dilations"), (), (), y.shape[2:])
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
        code=op.text("expression", "a"),
        accumulate=Reduction[op.text("reduction", "MAX")],
    )


def tiles(windows: Windows, shape: tuple[int, ...]) -> bool:
    """Whether every element of the spatial dimensions is in exactly one window, elements of a window side by side."""
    return all(
        extent == kernel * count and (kernel == 1 or dilation == 1) and (count == 1 or kernel == stride)
        for extent, kernel, stride, dilation, count in zip(
            shape, windows.kernel, windows.strides, windows.dilations, windows.counts, strict=True
        )
    )

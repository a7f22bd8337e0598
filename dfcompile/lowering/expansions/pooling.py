"""Pooling: a reduction over windows."""

from dfcompile.lowering import CanonicalFragment, MapFragment, Operator, Reduction, expansion, onnx_expansion
from dfcompile.lowering.windows import Windows, windows_of


@onnx_expansion("MaxPool", "window", default=True)
def max_pool(op: Operator, build: CanonicalFragment) -> None:
    """The largest element of every window; padding counts as minus infinity."""
    x, y = op.input(0), op.output()
    if len(op.outputs) > 1 and op.outputs[1] is not None:
        raise op.unsupported("the result 'Indices' has no expansion (use the values only)")
    windows = windows_of(op, op.integers("kernel_shape"))
    if windows.is_padded:
        padded = build.array("padded", windows.padded_shape(x.shape))
        build.op("Pad", "pad", [x], [padded], pads=windows.pads(), value=float("-inf"))
        x = padded
    build.op(
        "Window",
        "window" if windows.is_padded else "",
        [x],
        [y],
        reduction="MAX",
        kernel=windows.kernel,
        strides=windows.strides,
        dilations=windows.dilations,
    )


@expansion("Window", "rows", source="dematteis23", default=True)
def window_rows(op: Operator, build: MapFragment) -> None:
    """``Y[b, c, y…] = reduce_k X[b, c, stride*y + dilation*k …]``: one downsampler.

    Row by row over the data: where the windows tile it, every element is read once, in row order, so that it streams.
    """
    x, y = op.input(0), op.output()
    windows = Windows(op.integers("kernel"), op.integers("strides"), op.integers("dilations"), (), (), y.shape[2:])
    loops = {"b": y.shape[0], "c": y.shape[1]}
    for window, count, element, extent in zip(
        windows.window_names, windows.counts, windows.kernel_names, windows.kernel, strict=True
    ):
        loops |= {window: count, element: extent}
    build.map(
        "",
        loops=loops,
        reads={"x": (x, ["b", "c", *windows.positions()])},
        write=(y, ["b", "c", *windows.window_names]),
        code="x",
        accumulate=Reduction[op.text("reduction", "MAX")],
    )

"""Conv by Winograd's minimal filtering: a product per element of a tile of the data instead of one per tap."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.short_convolutions import MOST_PRODUCTS, cook_toom, single_tap
from dfcompile.lowering.tiled_convolution import TiledConvolution
from dfcompile.lowering.windows import windows_of


@onnx_expansion("Conv", "winograd", source="lavin16")
def winograd(op: Operator, build: CanonicalFragment) -> None:
    """F(2x2, 3x3) and its like: two results per tile and dimension, of up to 5 taps; stride and dilation 1."""
    _add(op, build, outputs=2)


@onnx_expansion("Conv", "winograd4", source="lavin16")
def winograd4(op: Operator, build: CanonicalFragment) -> None:
    """F(4x4, 3x3) and its like: four results per tile and dimension, of up to 3 taps; stride and dilation 1."""
    _add(op, build, outputs=4)


def _add(op: Operator, build: CanonicalFragment, outputs: int) -> None:
    x, w = op.input(0), op.input(1)
    windows = windows_of(op, w.shape[2:])
    most = MOST_PRODUCTS + 1 - outputs
    if max(windows.kernel, default=1) == 1:
        raise op.unsupported("a window of one element against one of several (use expansion im2col or direct)")
    for taps, stride, dilation in zip(windows.kernel, windows.strides, windows.dilations, strict=True):
        if taps > most:
            raise op.unsupported(f"a window of {taps} elements along an axis against at most {most} (try fft)")
        if taps > 1 and (stride, dilation) != (1, 1):
            raise op.unsupported(f"stride {stride} and dilation {dilation} against 1 and 1 (try fft)")
    short = [single_tap() if taps == 1 else cook_toom(outputs, taps) for taps in windows.kernel]
    TiledConvolution.of(op, windows, short).add(build, x, w, op.optional_input(2), op.output())

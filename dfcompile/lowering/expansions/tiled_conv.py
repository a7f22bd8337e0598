"""Conv by tiles of the data: by Winograd's minimal filtering, or by Fourier transforms in real arithmetic."""

from collections.abc import Iterator
from itertools import product

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.short_convolutions import MOST_PRODUCTS, ShortConvolution, cook_toom, fourier, single_tap
from dfcompile.lowering.tiled_convolution import TiledConvolution
from dfcompile.lowering.windows import Windows, windows_of


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


_LONGEST = 4  # tiles, in powers of two that a window fits: matrices of longer ones take more than products save


@onnx_expansion("Conv", "fft", source="mathieu14")
def fft(op: Operator, build: CanonicalFragment) -> None:
    """Spectra of tiles of the data times spectra of the filters, in tiles of least work; windows of any size."""
    windows = windows_of(op, op.input(1).shape[2:])
    choices = product(*(tuple(_along(windows, axis)) for axis in range(len(windows.kernel))))
    candidates = (TiledConvolution.of(op, windows, short) for short in choices)
    best = min(candidates, key=lambda each: each.work)
    for each in best.short:
        build.check_parameter(each.data.shape)
    best.add(build, op.input(0), op.input(1), op.optional_input(2), op.output())


def _along(windows: Windows, axis: int) -> Iterator[ShortConvolution]:
    """Yield short convolutions along a dimension: tiles of powers of two, as few as that one takes all."""
    taps, stride, dilation = windows.kernel[axis], windows.strides[axis], windows.dilations[axis]
    if taps == 1:
        yield single_tap()
        return
    window = dilation * (taps - 1) + 1
    tile, needed = 1 << (window - 1).bit_length(), stride * (windows.counts[axis] - 1) + window
    for _ in range(_LONGEST):
        yield fourier(tile, taps, stride, dilation)
        if tile >= needed:
            return
        tile *= 2

"""Conv by discrete Fourier transforms of tiles of the data, in real arithmetic."""

from collections.abc import Iterator
from itertools import product

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.short_convolutions import ShortConvolution, fourier, single_tap
from dfcompile.lowering.tiled_convolution import TiledConvolution
from dfcompile.lowering.windows import Windows, windows_of

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

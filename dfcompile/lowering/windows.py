"""Where the windows of a convolution or a pooling lie: kernel, strides, dilations, padding."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor
from dfcompile.lowering.operators import Pad


class Windows(Struct, frozen=True):
    """Windows over the spatial dimensions of ``X[batch, channel, …]``; one entry per spatial dimension.

    Attributes:
        kernel: extent of a window.
        strides: distance between windows.
        dilations: distance between the elements of a window.
        pads_begin: elements to put before the data.
        pads_end: elements to put behind the data, so many that the last window lies within.
        counts: number of windows.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    counts: tuple[int, ...]

    def padded(self, build: CanonicalFragment, x: Tensor, value: float = 0) -> Tensor:
        """Return ``X[batch, channel, …]`` with a value around it, as far as windows reach over it."""
        return padded(build, x, self.pads_begin, self.pads_end, value)


def padded(
    build: CanonicalFragment, x: Tensor, begins: Sequence[int], ends: Sequence[int], value: float = 0, suffix: str = ""
) -> Tensor:
    """Return ``X[batch, channel, …]`` with so many elements around it per spatial dimension; negative ones crop."""
    if not any((*begins, *ends)):
        return x
    extents = (extent + begin + end for extent, begin, end in zip(x.shape[2:], begins, ends, strict=True))
    pad = Pad((0, 0, *begins, 0, 0, *ends), value=value)
    return build.made(f"padded{suffix}", pad, [x], (*x.shape[:2], *extents), x.dtype, step=f"pad{suffix}")


def windows_of(op: Operator, kernel: tuple[int, ...]) -> Windows:
    """Read the windows of a Conv or pooling operator from its attributes.

    The number of windows is taken from the result's shape, so ``ceil_mode`` is honoured: missing elements at the end
    become padding.

    Raises:
        UnsupportedOpError: an attribute has not one entry per spatial dimension, or ``auto_pad`` is unknown.
    """
    data, counts = op.input(0).shape[2:], op.results()[0].shape[2:]  # of several, all are as large
    rank = len(data)
    strides = op.integers("strides", (1,) * rank)
    dilations = op.integers("dilations", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    lengths = (len(kernel), len(strides), len(dilations), len(counts))
    if lengths != (rank,) * 4 or len(pads) != 2 * rank:
        found = (*lengths[:3], len(pads))
        raise op.unsupported(f"kernel, strides, dilations, pads have {found} entries for {rank} axes")
    places = zip(counts, strides, kernel, dilations, strict=True)
    spans = [(count - 1) * stride + (extent - 1) * dilation + 1 for count, stride, extent, dilation in places]
    missing = [max(span - extent, 0) for span, extent in zip(spans, data, strict=True)]
    auto_pad = op.text("auto_pad", "NOTSET")
    if auto_pad == "NOTSET":
        begins = pads[:rank]
    elif auto_pad == "VALID":
        begins = (0,) * rank
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        begins = tuple((total + (auto_pad == "SAME_LOWER")) // 2 for total in missing)
    else:
        raise op.unsupported(f"attribute 'auto_pad' is {auto_pad!r}")
    ends = [max(span - extent - begin, 0) for span, extent, begin in zip(spans, data, begins, strict=True)]
    return Windows(kernel, strides, dilations, tuple(begins), tuple(ends), tuple(counts))

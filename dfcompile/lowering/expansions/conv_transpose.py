"""Windows that are added up where they overlap: transposed convolution, ONNX Col2Im and the canonical Col2im.

Transposed convolution is ``Y[b, o, stride*y + dilation*k - pad …] += X[b, c, y…] * W[c, o, k…]``, plus bias.
"""

from itertools import product
from math import gcd, prod

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expansions.conv import add_sums
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.nests.affine import linear_index
from dfcompile.lowering.operators import Col2im, Convolution, Copy, TransposedConvolution
from dfcompile.lowering.operators.convolution import window_places
from dfcompile.lowering.windows import padded

_MOST_PHASES = 64  # convolutions


@onnx_expansion("ConvTranspose", "direct", default=True)
def conv_transpose(op: Operator, build: CanonicalFragment) -> None:
    """One canonical TransposedConvolution on the tensors as they are, then what the pads leave of it, then the bias."""
    x, w, y, bias = op.input(0), op.input(1), op.output(), op.optional_input(2)
    strides, dilations, begins = geometry(op)
    counts = y.shape[2:]
    # Behind the last window there may be elements that no window reaches: output padding.
    places = zip(_spans(op, strides, dilations), begins, counts, strict=True)
    extents = [max(span, begin + count) for span, begin, count in places]
    is_cropped = tuple(extents) != counts
    dtype = y.dtype if bias is None else sum_dtype(y.dtype)
    product = y if bias is None and not is_cropped else build.array("product", (*y.shape[:2], *extents), dtype)
    build.add(TransposedConvolution(strides, dilations, op.integer("group", 1)), [x, w], product, step="convolution")
    if is_cropped:
        cropped = y if bias is None else build.array("cropped", y.shape, dtype)
        read = ("i0", "i1", *(f"{begin} + i{2 + axis}" for axis, begin in enumerate(begins)))
        build.add(Copy(read=read), [product], cropped, step="crop")
        product = cropped
    if bias is not None:
        build.elementwise("a + b", [product, bias], y, axes=[list(range(y.rank)), [1]], step="bias")


def geometry(op: Operator) -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
    """Return strides, dilations, and how many elements are cropped at the begin of every spatial dimension."""
    rank = op.input(0).rank - 2
    strides, dilations = op.integers("strides", (1,) * rank), op.integers("dilations", (1,) * rank)
    auto_pad = op.text("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        return strides, dilations, [0] * rank
    if auto_pad == "NOTSET" and "output_shape" not in op.attributes:
        return strides, dilations, list(op.integers("pads", (0,) * (2 * rank))[:rank])
    paddings, sizes = op.integers("output_padding", (0,) * rank), op.output().shape[2:]
    columns = zip(_spans(op, strides, dilations), paddings, sizes, strict=True)
    totals = [max(span + padding - size, 0) for span, padding, size in columns]
    return strides, dilations, [(total + (auto_pad != "SAME_UPPER")) // 2 for total in totals]


def _spans(op: Operator, strides: tuple[int, ...], dilations: tuple[int, ...]) -> list[int]:
    """Return how many elements the windows of all elements of the data reach, per spatial dimension."""
    columns = zip(strides, op.input(0).shape[2:], dilations, op.input(1).shape[2:], strict=True)
    return [stride * (extent - 1) + dilation * (kernel - 1) + 1 for stride, extent, dilation, kernel in columns]


@expansion(TransposedConvolution, "filters", source="onnx", default=True)
def transposed_convolution_per_filter(op: CanonicalNode[TransposedConvolution], build: MapFragment) -> None:
    """One task per filter, which adds every element of the data, times the filter, to the place of its window."""
    add_sums(op, build, op.input(1).shape[1], op.input(0).shape[2:], "x * w")


class _Phase(Struct, frozen=True):
    """The results of one remainder by the stride along a spatial dimension: they see the same taps.

    A result at place t, of a stride s and a dilation d, sums ``X[y] * W[k]`` over ``s*y + d*k = t + pad``. Of all t
    with ``t + pad = s*q + r`` these are the taps with ``d*k = r`` modulo s: every ``s / gcd(d, s)``-th one, and y falls
    by ``d / gcd(d, s)`` from each of them to the next. So each remainder r is a convolution of stride 1 with those taps
    in reverse [shi16, section 2].

    Attributes:
        first: place of the first of them.
        step: from each to the next: the stride.
        count: how many there are.
        last_tap: of the filter, which comes first.
        taps: how many there are.
        between_taps: of the filter.
        dilation: elements of the data from each tap to the next.
        begin: elements to put before the data; negative: to leave out.
        end: the same behind it.
    """

    first: int
    step: int
    count: int
    last_tap: int
    taps: int
    between_taps: int
    dilation: int
    begin: int
    end: int


@onnx_expansion("ConvTranspose", "phases", source="shi16")
def phases(op: Operator, build: CanonicalFragment) -> None:
    """A canonical Convolution of stride 1 per remainder of places by the strides; then the bias; results interleave."""
    x, w, y, bias = op.input(0), op.input(1), op.output(), op.optional_input(2)
    group = op.integer("group", 1)
    channels, rows = w.shape[0] // group, w.shape[1]
    strides, dilations, begins = geometry(op)
    if prod(strides) > _MOST_PHASES:
        raise op.unsupported(f"{prod(strides)} convolutions, of strides {strides}, against at most {_MOST_PHASES}")
    columns = zip(x.shape[2:], w.shape[2:], y.shape[2:], strides, dilations, begins, strict=True)
    several = list(product(*[_phases(op, *column) for column in columns]))
    for number, chosen in enumerate(several):
        suffix = str(number) if len(several) > 1 else ""
        taps, counts = [each.taps for each in chosen], [each.count for each in chosen]
        places = [f"{each.last_tap} + {-each.between_taps}*i{3 + axis}" for axis, each in enumerate(chosen)]
        read = linear_index(["i0", "i2"], (group, channels)), "i1", *places
        write = linear_index(["i0", "i1"], (group, rows)), "i2", *(f"i{3 + axis}" for axis in range(len(taps)))
        reversed_taps = Copy((group, rows, channels, *taps), read, write)
        filters = build.made(f"filters{suffix}", reversed_taps, [w], (group * rows, channels, *taps), w.dtype)
        result = y if not suffix else build.array(f"phase{suffix}", (*y.shape[:2], *counts), y.dtype)
        sums = result if bias is None else build.array(f"product{suffix}", result.shape, sum_dtype(y.dtype))
        convolution = Convolution((1,) * len(taps), tuple(each.dilation for each in chosen), group)
        data = padded(build, x, [each.begin for each in chosen], [each.end for each in chosen], suffix=suffix)
        build.add(convolution, [data, filters], sums, step=f"convolution{suffix}")
        if bias is not None:
            axes = [list(range(y.rank)), [1]]
            build.elementwise("a + b", [sums, bias], result, axes=axes, step=f"bias{suffix}")
        if suffix:
            at = (f"{each.first} + {each.step}*i{2 + axis}" for axis, each in enumerate(chosen))
            build.add(Copy(result.shape, write=("i0", "i1", *at)), [result], y, step=f"interleave{suffix}")


def _phases(op: Operator, extent: int, kernel: int, results: int, stride: int, dilation: int, pad: int) -> list[_Phase]:
    """Return what the results along a dimension are.

    Raises:
        UnsupportedOpError: no tap reaches some of them, or their taps reach no element of the data.
    """
    common = gcd(dilation, stride)
    apart = stride // common
    found = []
    for first in range(min(stride, results)):
        remainder, at = (first + pad) % stride, (first + pad) // stride
        taps = [tap for tap in range(min(kernel, apart)) if (dilation * tap - remainder) % stride == 0]
        op.refuse_if(not taps, f"stride {stride} against windows that reach every result (use expansion direct)")
        count = (results - first + stride - 1) // stride
        taps_count = (kernel - taps[0] + apart - 1) // apart
        last_tap = taps[0] + apart * (taps_count - 1)
        begin = -(at + (remainder - dilation * last_tap) // stride)
        span = count + dilation // common * (taps_count - 1)
        end = span - extent - begin
        op.refuse_if(min(begin, end) <= -extent, "results that no element of the data reaches (use expansion direct)")
        found.append(_Phase(first, stride, count, last_tap, taps_count, apart, dilation // common, begin, end))
    return found


@onnx_expansion("Col2Im", "map", default=True)
def col2im(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, stride*y + dilation*k - pad …] += X[b, (c, k…), (y…)]``: one task adds up, one crops the pads."""
    x, y = op.input(0), op.output()
    image, kernel = op.static_integers(1, "image_shape") or (), op.static_integers(2, "block_shape") or ()
    rank = len(image)
    strides, dilations = op.integers("strides", (1,) * rank), op.integers("dilations", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    padded = [image[axis] + pads[axis] + pads[axis + rank] for axis in range(rank)]
    spans = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True)]
    counts = [(extent - span) // stride + 1 for extent, span, stride in zip(padded, spans, strides, strict=True)]
    channels = x.shape[1] // prod(kernel)
    windows = build.view(x, "windows", (x.shape[0], channels, *kernel, *counts))
    summed = build.array("summed", (x.shape[0], channels, *padded)) if any(pads) else y
    build.add(Col2im(strides, dilations), [windows], summed, step="sum" if any(pads) else "")
    if any(pads):
        places = (f"{pads[axis]} + i{2 + axis}" for axis in range(rank))
        build.add(Copy(read=("i0", "i1", *places)), [summed], y, step="crop")


@expansion(Col2im, "map", source="onnx", default=True)
def col2im_map(op: CanonicalNode[Col2im], build: MapFragment) -> None:
    """One task adds every element of the windows to its place, in the order in which they are stored."""
    x, y = op.input(0), op.output()
    rank = y.rank - 2
    spatial = [f"{letter}{axis}" for letter in "ky" for axis in range(rank)]
    loops = dict(zip(["b", "c", *spatial], x.shape, strict=True))
    places = "b", "c", *window_places(op.operator.strides, op.operator.dilations)
    build.map("", loops=loops, reads={"x": (x, list(loops))}, write=(y, places), code="x", accumulate=Reduction.SUM)

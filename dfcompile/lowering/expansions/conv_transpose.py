"""Transposed convolution ``Y[b, o, stride*y + dilation*k - pad …] += X[b, c, y…] * W[c, o, k…]``, plus bias."""

from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    MapFragment,
    Operator,
    Reduction,
    expansion,
    onnx_expansion,
)
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.nests.affine import linear_index
from dfcompile.lowering.operators import Copy, TransposedConvolution


@onnx_expansion("ConvTranspose", "direct", default=True)
def conv_transpose(op: Operator, build: CanonicalFragment) -> None:
    """One canonical TransposedConvolution on the tensors as they are, then what the pads leave of it, then the bias."""
    x, w, y, bias = op.input(0), op.input(1), op.output(), op.optional_input(2)
    rank = x.rank - 2
    strides, dilations = op.integers("strides", (1,) * rank), op.integers("dilations", (1,) * rank)
    window, counts = w.shape[2:], y.shape[2:]
    begins = crops_before(op, strides, dilations)
    spans = [
        stride * (extent - 1) + dilation * (kernel - 1) + 1
        for stride, extent, dilation, kernel in zip(strides, x.shape[2:], dilations, window, strict=True)
    ]
    # Behind the last window there may be elements that no window reaches: output padding.
    extents = [max(span, begin + count) for span, begin, count in zip(spans, begins, counts, strict=True)]
    is_cropped = tuple(extents) != counts
    shape = (*y.shape[:2], *extents)
    dtype = y.dtype if bias is None else sum_dtype(y.dtype)
    product = y if bias is None and not is_cropped else build.array("product", shape, dtype)
    build.add(TransposedConvolution(strides, dilations, op.integer("group", 1)), [x, w], product, step="convolution")
    if is_cropped:
        cropped = y if bias is None else build.array("cropped", y.shape, dtype)
        places = (f"{begin} + i{2 + axis}" for axis, begin in enumerate(begins))
        build.add(Copy(read=("i0", "i1", *places)), [product], cropped, step="crop")
        product = cropped
    if bias is not None:
        build.elementwise("a + b", [product, bias], y, axes=[list(range(y.rank)), [1]], step="bias")


def crops_before(op: Operator, strides: tuple[int, ...], dilations: tuple[int, ...]) -> list[int]:
    """Return how many elements are cropped at the begin of every spatial dimension."""
    x, w, y = op.input(0), op.input(1), op.output()
    rank = x.rank - 2
    auto_pad = op.text("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        return [0] * rank
    if auto_pad == "NOTSET" and "output_shape" not in op.attributes:
        return list(op.integers("pads", (0,) * (2 * rank))[:rank])
    paddings = op.integers("output_padding", (0,) * rank)
    begins = []
    for axis in range(rank):
        span = strides[axis] * (x.shape[2 + axis] - 1) + dilations[axis] * (w.shape[2 + axis] - 1) + 1
        total = max(span + paddings[axis] - y.shape[2 + axis], 0)
        begins.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
    return begins


@expansion(TransposedConvolution, "filters", source="onnx", default=True)
def transposed_convolution_per_filter(op: CanonicalNode[TransposedConvolution], build: MapFragment) -> None:
    """One task per filter, which adds every element of the data, times the filter, to the place of its window."""
    x, w, y = op.input(0), op.input(1), op.output()
    group = op.operator.group
    channels, rows = x.shape[1] // group, w.shape[1]
    elements = {f"k{axis}": extent for axis, extent in enumerate(w.shape[2:])}
    positions = {f"y{axis}": extent for axis, extent in enumerate(x.shape[2:])}
    places = [
        f"{stride}*{position} + {dilation}*{element}"
        for stride, position, dilation, element in zip(
            op.operator.strides, positions, op.operator.dilations, elements, strict=True
        )
    ]
    channel = linear_index(["g", "c"], (group, channels))
    build.map(
        "filters",
        spatial={"g": group, "r": rows},
        loops={"b": x.shape[0], **positions, "c": channels, **elements},
        reads={"x": (x, ["b", channel, *positions]), "w": (w, [channel, "r", *elements])},
        write=(y, ["b", linear_index(["g", "r"], (group, rows)), *places]),
        code="x * w",
        accumulate=Reduction.SUM,
    )

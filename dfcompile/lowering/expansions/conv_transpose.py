"""Transposed convolution ``Y[b, o, stride*y + dilation*k - pad …] += X[b, c, y…] * W[c, o, k…]``, plus bias."""

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.nests.affine import linear_index
from dfcompile.lowering.operators import Copy, Reduction, TransposedConvolution
from dfcompile.lowering.operators.convolution import window_places


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
    begins = []
    paddings, sizes = op.integers("output_padding", (0,) * rank), op.output().shape[2:]
    for span, padding, size in zip(_spans(op, strides, dilations), paddings, sizes, strict=True):
        total = max(span + padding - size, 0)
        begins.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
    return strides, dilations, begins


def _spans(op: Operator, strides: tuple[int, ...], dilations: tuple[int, ...]) -> list[int]:
    """Return how many elements the windows of all elements of the data reach, per spatial dimension."""
    columns = zip(strides, op.input(0).shape[2:], dilations, op.input(1).shape[2:], strict=True)
    return [stride * (extent - 1) + dilation * (kernel - 1) + 1 for stride, extent, dilation, kernel in columns]


@expansion(TransposedConvolution, "filters", source="onnx", default=True)
def transposed_convolution_per_filter(op: CanonicalNode[TransposedConvolution], build: MapFragment) -> None:
    """One task per filter, which adds every element of the data, times the filter, to the place of its window."""
    x, w, y = op.input(0), op.input(1), op.output()
    group = op.operator.group
    channels, rows = x.shape[1] // group, w.shape[1]
    elements = {f"k{axis}": extent for axis, extent in enumerate(w.shape[2:])}
    positions = {f"y{axis}": extent for axis, extent in enumerate(x.shape[2:])}
    places = window_places(op.operator.strides, op.operator.dilations)
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

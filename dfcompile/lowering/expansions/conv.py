"""Convolution ``Y[b, o, y…] = bias[o] + sum_{c, k…} X[b, c, stride*y + dilation*k …] * W[o, c, k…]``, and transposed.

Any number of spatial dimensions, strides, padding, dilation and groups. Windows of a transposed convolution, of ONNX
Col2Im and of the canonical Col2im are added up where they overlap: ``Y[b, o, stride*y + dilation*k - pad …] +=
X[b, c, y…] * W[c, o, k…]``, plus bias.
"""

from collections.abc import Sequence
from itertools import product
from math import gcd, prod

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expansions.own_loops import add_scope
from dfcompile.lowering.expressions import linear_index, product_of, sum_dtype
from dfcompile.lowering.operators import Col2im, Convolution, Copy, Im2col, MatMul, TransposedConvolution
from dfcompile.lowering.operators.convolution import window_places
from dfcompile.lowering.tensor import Tensor
from dfcompile.lowering.windows import padded, windows_of


class PerRow(Struct, frozen=True):
    """What is made of the sums of a convolution, one element-wise task.

    Attributes:
        expression: of a sum ``a`` and, from ``b`` on, of the operands.
        operands: one element per filter, or one for all.
        sums: numpy name of the element type of the sums.
        step: what it does.
        result: short name of what comes out.
    """

    expression: str
    operands: tuple[Tensor, ...]
    sums: str
    step: str
    result: str

    def add(self, build: CanonicalFragment, sums: Tensor, result: Tensor, filters: tuple[int, ...]) -> None:
        """Add it; the filters are along these dimensions of the sums."""
        extents = tuple(sums.shape[axis] for axis in filters)
        operands, axes = [sums], [tuple(range(sums.rank))]
        for position, operand in enumerate(self.operands):
            is_viewed = operand.elements > 1 and operand.shape != extents
            operands.append(build.view(operand, f"row_{self.step}{position or ''}", extents) if is_viewed else operand)
            axes.append(filters if operand.elements > 1 else filters[:1])
        build.elementwise(self.expression, operands, result, axes=axes, step=self.step)


@onnx_expansion("Conv", "im2col", source="chellapilla06", default=True)
def im2col(op: Operator, build: CanonicalFragment) -> None:
    """The windows and the filters become matrices in memory, which are multiplied; then bias and output layout.

    ``X -> cols[group, window, batch*y…]``, ``W -> filters[group, row, window]``, ``product = filters @ cols``,
    ``biased = product + bias``, ``Y[batch, group*row, y…]``. Without groups the matrices have no group dimension.
    """
    add_im2col(op, build, op.input(0), op.input(1), _biased(op))


def add_im2col(op: Operator, build: CanonicalFragment, x: Tensor, w: Tensor, last: PerRow | None) -> None:
    """Add the convolution of x, not yet padded, with w as products of matrices; then what is made of the sums."""
    y = op.output()
    windows = windows_of(op, w.shape[2:])
    group, window = op.integer("group", 1), prod(w.shape[1:])
    rows, columns = w.shape[0] // group, y.shape[0] * prod(windows.counts)
    lead = (group,) if group > 1 else ()
    cols = build.array("cols", (*lead, window, columns), x.dtype, materialised=True)
    filters = build.array("filters", (*lead, rows, window), w.dtype, materialised=True)
    as_columns = Im2col(windows.kernel, windows.strides, windows.dilations, windows.counts, group)
    build.add(as_columns, [windows.padded(build, x)], cols, step="im2col")
    build.add(Copy(), [build.view(w, "weights", filters.shape)], filters, step="weights")
    dtype = y.dtype if last is None else last.sums
    product = build.array("product", (*lead, rows, columns), dtype, materialised=last is None)
    build.add(MatMul(), [filters, cols], product, step="matmul")
    if last is not None:
        finished = build.array(last.result, product.shape, y.dtype, materialised=True)
        last.add(build, product, finished, tuple(range(len(lead) + 1)))
        product = finished
    # Loops of the output, `Y[b, g*rows + r, y…] = product[g, r, b*windows + y…]`: i0 = batch, i1 = group, i2 = row,
    # then one per spatial dimension.
    spatial = [f"i{3 + axis}" for axis in range(len(windows.counts))]
    column = linear_index(["i0", *spatial], (y.shape[0], *windows.counts))
    read = ("i1", "i2", column) if group > 1 else ("i2", column)
    write = ("i0", linear_index(["i1", "i2"], (group, rows)), *spatial)
    build.add(Copy((y.shape[0], group, rows, *windows.counts), read, write), [product], y, step="output")


def _biased(op: Operator) -> PerRow | None:
    """Return what is made of the sums of a Conv: a bias is added, or nothing."""
    bias = op.optional_input(2)
    return None if bias is None else PerRow("a + b", (bias,), sum_dtype(op.output().dtype), "bias", "biased")


@expansion(Im2col, "map", source="chellapilla06", default=True)
def im2col_map(op: CanonicalNode[Im2col], build: MapFragment) -> None:
    """``cols[g, (c, k…), (b, y…)] = X[b, g*channels + c, stride*y + dilation*k …]``: one task, row by row."""
    elements, places = ([f"{letter}{axis}" for axis in range(len(op.operator.kernel))] for letter in "ky")
    add_scope(op, build, "x", order=["g", "c", *elements, "b", *places], variables="x")


def is_grouped(op: Operator) -> bool:
    """Of a group the matrices of im2col are small: of a depthwise convolution one row, a few products per task."""
    return op.integer("group", 1) > 1


@onnx_expansion("Conv", "direct", source="onnx", default=is_grouped)
def direct(op: Operator, build: CanonicalFragment) -> None:
    """One canonical Convolution on the tensors as they are, then the bias; the default with groups (depthwise)."""
    add_direct(op, build, op.input(0), op.input(1), _biased(op))


def add_direct(op: Operator, build: CanonicalFragment, x: Tensor, w: Tensor, last: PerRow | None) -> None:
    """Add the convolution of x, not yet padded, with w as one operator; then what is made of the sums."""
    y = op.output()
    windows = windows_of(op, w.shape[2:])
    product = y if last is None else build.array("product", y.shape, last.sums)
    convolution = Convolution(windows.strides, windows.dilations, op.integer("group", 1))
    build.add(convolution, [windows.padded(build, x), w], product, step="convolution")
    if last is not None:
        last.add(build, product, y, (1,))


@expansion(Convolution, "filters", source="onnx", default=True)
def convolution_per_filter(op: CanonicalNode[Convolution], build: MapFragment) -> None:
    """One task per filter, which reads every window of its channels once per element of the filter.

    Weight-stationary: a task keeps its filter while the windows pass by.
    """
    add_sums(op, build, op.input(1).shape[0] // op.operator.group, op.output().shape[2:], _products(op))


@expansion(Convolution, "windows", source="parashar17")
def convolution_per_window(op: CanonicalNode[Convolution], build: MapFragment) -> None:
    """One task per window of each group, which reads every filter of the group once per element of the window.

    Input-stationary: a task keeps its window while the filters pass by, the same for all tasks that run in step.
    """
    rows, counts = op.input(1).shape[0] // op.operator.group, op.output().shape[2:]
    add_sums(op, build, rows, counts, _products(op), per_window=True)


def _products(op: CanonicalNode[Convolution]) -> str:
    return product_of("x", "w", (op.input(0).dtype, op.input(1).dtype), op.output().dtype)


def add_sums(
    op: CanonicalNode[Convolution] | CanonicalNode[TransposedConvolution],
    build: MapFragment,
    rows: int,
    counts: Sequence[int],
    code: str,
    *,
    per_window: bool = False,
) -> None:
    """Add one task per filter of each group, or one per window, which sums products up.

    Args:
        op: the operator.
        build: its fragment.
        rows: filters of a group.
        counts: windows, per spatial dimension.
        code: the product of ``x`` and ``w``.
        per_window: the tasks are windows, and go through the filters.
    """
    (x, w), y, group = op.operands(), op.output(), op.operator.group
    channels = x.shape[1] // group
    elements = {f"k{axis}": extent for axis, extent in enumerate(w.shape[2:])}
    positions = {f"y{axis}": extent for axis, extent in enumerate(counts)}
    places = window_places(op.operator.strides, op.operator.dilations)
    channel, one = linear_index(["g", "c"], (group, channels)), linear_index(["g", "r"], (group, rows))
    is_transposed = isinstance(op.operator, TransposedConvolution)
    read, written = (positions, places) if is_transposed else (places, positions)
    of_filter = [channel, "r", *elements] if is_transposed else [one, "c", *elements]
    reads, write = {"x": (x, ["b", channel, *read]), "w": (w, of_filter)}, (y, ["b", one, *written])
    groups, filters, windows = {"g": group}, {"r": rows}, {"b": x.shape[0], **positions}
    step, spatial, loops = "filters", {**groups, **filters}, windows
    if per_window:
        step, spatial, loops = "windows", {**windows, **groups}, filters
    summed, total = {"c": channels, **elements}, Reduction.SUM
    build.map(step, spatial=spatial, loops={**loops, **summed}, reads=reads, write=write, code=code, accumulate=total)


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

"""Pooling: a reduction over windows, of what is padded first, or over channels; the canonical Window."""

from math import prod

import numpy as np
import numpy.typing as npt

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expansions.own_loops import add_scope
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.node import POSITIVE
from dfcompile.lowering.operators import Copy, Update, Window
from dfcompile.lowering.windows import Windows, windows_of


@onnx_expansion("MaxPool", "window", default=True)
def max_pool(op: Operator, build: CanonicalFragment) -> None:
    """The largest element of every window; padding counts as minus infinity."""
    x, windows = _padded(op, build, float("-inf"))
    if op.optional_output(1) is not None:
        _add_with_places(op, build, x, windows)
    else:
        build.add(window_of(windows, Reduction.MAX), [x], op.output(), step="" if x is op.input(0) else "window")


def _add_with_places(op: Operator, build: CanonicalFragment, x: Tensor, windows: Windows) -> None:
    """Add the largest element of every window, and where in the data the first of them stands.

    The windows stand in memory element by element, as columns of a convolution do: both downsamplers read them.
    """
    data, places = op.input(0), op.output(1)
    y = op.optional_output(0) or build.array("largest", places.shape)
    planes, rank = y.shape[:2], len(windows.kernel)
    elements = build.array("windows", (*planes, *windows.counts, *windows.kernel), materialised=True)
    loops = [f"i{axis}" for axis in range(2 * rank + 2)]
    columns = zip(windows.strides, loops[2 : 2 + rank], windows.dilations, loops[2 + rank :], strict=True)
    read = (f"{stride}*{window} + {dilation}*{element}" for stride, window, dilation, element in columns)
    build.add(Copy(elements.shape, ("i0", "i1", *read), tuple(loops)), [x], elements, step="windows")
    axes = list(range(2 + rank, 2 + 2 * rank))
    build.reduce(Reduction.MAX, [elements], y, axes, step="window")
    build.check_parameter(elements.shape[2:])
    numbers = build.parameter("numbers", _places_in_plane(op, windows))
    largest = build.view(y, "largest_rows", (*y.shape, *(1,) * rank))
    in_plane = build.array("in_plane", y.shape, places.dtype)
    source = f"c if a == b else {prod(data.shape)}"
    build.reduce(Reduction.MIN, [elements, largest, numbers], in_plane, axes, source, step="first")
    firsts = np.arange(prod(planes), dtype=places.dtype).reshape(planes) * prod(data.shape[2:])
    operands = [in_plane, build.parameter("planes", firsts)]
    source, spatial = "a + b", data.shape[2:]
    if op.integer("storage_order", 0):  # the first is sought in row order all the same
        for axis, extent in enumerate(spatial):
            place = f"a / {prod(spatial[axis + 1 :])} % {extent} * {prod(spatial[:axis])}"
            source = f"{source} + {place}" if axis else f"b + {place}"
    build.elementwise(source, operands, places, axes=[tuple(range(y.rank)), (0, 1)], step="places")


def _places_in_plane(op: Operator, windows: Windows) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the flat place in its plane of every element of every window; one behind all data for padding."""
    data, rank = op.input(0).shape, len(windows.kernel)
    flat, is_inside = np.zeros((), np.int64), np.ones((), np.bool_)
    for axis, extent in enumerate(data[2:]):
        first = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.pads_begin[axis]
        at = first[:, None] + np.arange(windows.kernel[axis]) * windows.dilations[axis]
        shape = [1] * 2 * rank
        shape[axis], shape[rank + axis] = at.shape
        flat = flat + (at * prod(data[3 + axis :])).reshape(shape)
        is_inside = is_inside & ((at >= 0) & (at < extent)).reshape(shape)
    return np.where(is_inside, flat, prod(data)).astype(np.int64)


@onnx_expansion("AveragePool", "window", default=True)
def average_pool(op: Operator, build: CanonicalFragment) -> None:
    """The sum of every window divided by its number of elements: one downsampler, one element-wise task.

    Where windows lie partly outside, the numbers of elements are a constant array.
    """
    y, (x, windows) = op.output(), _padded(op, build)
    total = build.made("total", window_of(windows), [x], y.shape, sum_dtype(y.dtype), step="window")
    sizes = window_sizes(op, build, windows)
    if sizes.min() == sizes.max():
        build.elementwise(f"a / {sizes.max()}", [total], y, step="divide")
    else:
        build.elementwise("a / b", [total, build.parameter("sizes", sizes.astype(total.dtype))], y, step="divide")


@onnx_expansion("LpPool", "window", default=True)
def lp_pool(op: Operator, build: CanonicalFragment) -> None:
    """``(sum |x| ** p) ** (1/p)`` of every window: one downsampler, one element-wise task."""
    y, (before, after) = op.output(), norm_expressions(op)
    x, windows = _padded(op, build)
    window = window_of(windows, expression=before)
    if after == "a":
        build.add(window, [x], y, step="window")
    else:
        total = build.made("total", window, [x], y.shape, sum_dtype(y.dtype), step="window")
        build.elementwise(after, [total], y, step="root")


def _padded(op: Operator, build: CanonicalFragment, value: float = 0) -> tuple[Tensor, Windows]:
    """Return the data with a value around it, and the windows over it."""
    windows = windows_of(op, op.integers("kernel_shape"))
    return windows.padded(build, op.input(0), value), windows


def window_of(windows: Windows, reduction: Reduction = Reduction.SUM, expression: str = "a") -> Window:
    """Return the canonical reduction over windows, of an array that is padded."""
    return Window(reduction, windows.kernel, windows.strides, windows.dilations, expression)


def norm_expressions(op: Operator) -> tuple[str, str]:
    """Return what is summed up for the norm of order ``p``, and what is made of the sum."""
    order = op.integer("p", 2, POSITIVE, "at least 1")
    if order == 1:
        return "abs(a)", "a"
    return ("a * a", "sqrt(a)") if order == 2 else (f"pow(abs(a), {order})", f"pow(a, {1 / order!r})")


def window_sizes(op: Operator, build: CanonicalFragment, windows: Windows) -> npt.NDArray[np.int64]:
    """Return how many elements of each window count, in dimensions that stand for those of the result.

    With ``count_include_pad`` those in the padding that the model asks for count as well; those that ``ceil_mode`` adds
    behind it never do.

    Raises:
        UnsupportedOpError: there are too many windows.
    """
    extents = op.input(0).shape[2:]
    before = behind = (0,) * len(extents)
    if op.integer("count_include_pad", 0):
        before, behind = windows.pads_begin, windows.pads_end
        if op.text("auto_pad", "NOTSET") in ("NOTSET", "VALID"):
            behind = op.integers("pads", (0,) * (2 * len(extents)))[len(extents) :]
    build.check_parameter(windows.counts)
    sizes = np.ones((1, 1), np.int64)
    for axis, extent in enumerate(extents):
        first = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.pads_begin[axis]
        kernel, dilation = windows.kernel[axis], windows.dilations[axis]
        # Elements of a window before the one at a place: its size does not matter, which may be vast.
        outside, reached = (
            np.clip(-((first - place) // dilation), 0, kernel) for place in (-before[axis], extent + behind[axis])
        )
        sizes = sizes[..., None] * (reached - outside).astype(np.int64)
    return np.maximum(sizes, 1)  # the average of a window that reaches over all of the data is 0


@onnx_expansion("LRN", "window", default=True)
def local_response_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, …] = X / (bias + alpha / size * sum_j X[b, c + j, …] ** 2) ** beta`` over neighbouring channels."""
    x, y, size = op.input(0), op.output(), op.integer("size", 1)
    batch, channels, rest = x.shape[0], x.shape[1], prod(x.shape[2:])
    # Neighbours that no channel has are left out, so that a vast size takes no vast window.
    before, behind = min((size - 1) // 2, channels - 1), min(size // 2, channels - 1)
    windows = Windows((before + 1 + behind, 1), (1, 1), (1, 1), (before, 0), (behind, 0), (channels, rest))
    planes = build.view(x, "planes", (batch, 1, channels, rest))
    window, padded = window_of(windows, expression="a * a"), windows.padded(build, planes)
    squares = build.made("squares", window, [padded], planes.shape, sum_dtype(x.dtype), step="window")
    alpha, beta, bias = op.real("alpha", 1e-4), op.real("beta", 0.75), op.real("bias", 1.0)
    sums = build.view(squares, "sums", x.shape)
    build.elementwise(f"a / pow({bias!r} + {alpha / size!r} * b, {beta!r})", [x, sums], y, step="scale")


@onnx_expansion("GlobalMaxPool", "map", default=True)
def global_max_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = max X[b, c, …]``: one downsampler."""
    x, y = op.input(0), op.output()
    build.reduce(Reduction.MAX, [x], y, range(2, x.rank))


@onnx_expansion("GlobalAveragePool", "map", default=True)
def global_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = sum X[b, c, …] / n``: one downsampler, one element-wise task."""
    _sum_and_finish(op, build, "a", f"a / {prod(op.input(0).shape[2:])}")


@onnx_expansion("GlobalLpPool", "map", default=True)
def global_lp_pool(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c] = (sum |X[b, c, …]| ** p) ** (1/p)``: one downsampler, one element-wise task."""
    _sum_and_finish(op, build, *norm_expressions(op))


def _sum_and_finish(op: Operator, build: CanonicalFragment, before: str, after: str) -> None:
    x, y = op.input(0), op.output()
    dtype = sum_dtype(y.dtype)
    total = build.reduced("total", Reduction.SUM, [x], range(2, x.rank), before, dtype=dtype, step="sum")
    build.elementwise(after, [total], y, step="finish")


@onnx_expansion("MaxUnpool", "update", default=True)
def max_unpool(op: Operator, build: CanonicalFragment) -> None:
    """``Y = 0``, but ``Y[indices[…]] = X[…]`` with Y as one row: each element is written where its index says."""
    x, indices, y = op.input(0), op.input(1), op.output()
    rank = x.rank - 2
    kernel, strides = op.integers("kernel_shape"), op.integers("strides", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    if (len(kernel), len(strides), len(pads)) != (rank, rank, 2 * rank) or indices.shape != x.shape:
        raise op.unsupported(f"indices {indices} of {x}, or attributes that are not of {rank} axes")
    padding = [begin + end for begin, end in zip(pads[:rank], pads[rank:], strict=True)]
    columns = zip(x.shape[2:], strides, padding, kernel, strict=True)
    sizes = tuple((extent - 1) * stride - pad + size for extent, stride, pad, size in columns)
    if y.shape != (*x.shape[:2], *sizes):
        # ONNX's definition counts indices in the size that the windows give, onnxruntime in the one that is asked for.
        raise op.unsupported(f"result {y} against the size {list(sizes)} that its windows give (pad it behind)")
    elements = prod(y.shape)
    build.check_parameter((elements,))
    zeros = build.parameter("zeros", np.zeros((elements,), x.dtype))
    places, values = build.view(indices, "places", (x.elements,)), build.view(x, "values", (x.elements,))
    build.view_as(build.made("result", Update(0, (0,)), [zeros, places, values], (elements,), step=""), y)


@expansion(Window, "rows", source="dematteis23", default=True)
def window_rows(op: CanonicalNode[Window], build: MapFragment) -> None:
    """``Y[b, c, y…] = reduce_k X[b, c, stride*y + dilation*k …]``: one downsampler.

    Where the windows tile the data, every element is read once, in row order, so that the data can stream. Where they
    overlap or leave something out, the data is in memory anyway, and the loops over a window are the innermost ones:
    every result is complete at once and can stream.
    """
    given, data, counts = op.operator, op.input(0).shape[2:], op.output().shape[2:]
    pairs = [(f"y{axis}", f"k{axis}") for axis in range(len(counts))]
    ordered = pairs if tiles(given, data, counts) else zip(*pairs, strict=True)
    add_scope(op, build, given.expression, given.reduction, ["b", "c", *(name for names in ordered for name in names)])


def tiles(window: Window, data: tuple[int, ...], counts: tuple[int, ...]) -> bool:
    """Whether every element of the spatial dimensions is in exactly one window, elements of a window side by side."""
    axes = zip(data, window.kernel, window.strides, window.dilations, counts, strict=True)
    return all(
        extent == kernel * count and (kernel == 1 or dilation == 1) and (count == 1 or kernel == stride)
        for extent, kernel, stride, dilation, count in axes
    )

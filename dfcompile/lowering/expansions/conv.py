"""Convolution ``Y[b, o, y…] = bias[o] + sum_{c, k…} X[b, c, stride*y + dilation*k …] * W[o, c, k…]``.

Any number of spatial dimensions, strides, padding, dilation and groups.
"""

from math import prod

from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    MapFragment,
    Operator,
    Reduction,
    Tensor,
    expansion,
    onnx_expansion,
)
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators import Convolution, Copy, Elementwise, Im2col, MatMul, Pad
from dfcompile.lowering.windows import Windows, windows_of


@onnx_expansion("Conv", "im2col", source="chellapilla06", default=True)
def im2col(op: Operator, build: CanonicalFragment) -> None:
    """The windows and the filters become matrices in memory, which are multiplied; then bias and output layout.

    ``X -> cols[group, window, batch*y…]``, ``W -> filters[group, row, window]``, ``product = filters @ cols``,
    ``biased = product + bias``, ``Y[batch, group*row, y…]``. Without groups the matrices have no group dimension.
    """
    w, y, bias = op.input(1), op.output(), op.optional_input(2)
    windows = windows_of(op, w.shape[2:])
    group, window = op.integer("group", 1), prod(w.shape[1:])
    rows, columns = w.shape[0] // group, y.shape[0] * prod(windows.counts)
    lead = (group,) if group > 1 else ()
    cols = build.array("cols", (*lead, window, columns), materialised=True)
    filters = build.array("filters", (*lead, rows, window), materialised=True)
    as_columns = Im2col(windows.kernel, windows.strides, windows.dilations, windows.counts, group)
    build.add(as_columns, [_padded(op, build, windows)], cols, step="im2col")
    build.add(Copy(), [build.view(w, "weights", filters.shape)], filters, step="weights")
    dtype = y.dtype if bias is None else sum_dtype(y.dtype)
    product = build.array("product", (*lead, rows, columns), dtype, materialised=bias is None)
    build.add(MatMul(), [filters, cols], product, step="matmul")
    if bias is not None:
        biased = build.array("biased", product.shape, y.dtype, materialised=True)
        row_bias = build.view(bias, "row_bias", (group, rows)) if lead else bias
        axes = (tuple(range(product.rank)), tuple(range(row_bias.rank)))
        build.add(Elementwise("a + b", axes), [product, row_bias], biased, step="bias")
        product = biased
    _lay_out(build, product, y, group)


def _padded(op: Operator, build: CanonicalFragment, windows: Windows) -> Tensor:
    x = op.input(0)
    if not windows.is_padded:
        return x
    padded = build.array("padded", windows.padded_shape(x.shape))
    build.add(Pad(windows.pads()), [x], padded, step="pad")
    return padded


def _lay_out(build: CanonicalFragment, product: Tensor, y: Tensor, group: int) -> None:
    """``Y[b, g*rows + r, y…] = product[g, r, b*windows + y…]``."""
    batch, rows, counts = y.shape[0], y.shape[1] // group, y.shape[2:]
    # Loops: i0 = batch, i1 = group, i2 = row, then one per spatial dimension.
    spatial = [f"i{3 + axis}" for axis in range(len(counts))]
    column = linear_index(["i0", *spatial], (batch, *counts))
    read = ("i1", "i2", column) if group > 1 else ("i2", column)
    write = ("i0", linear_index(["i1", "i2"], (group, rows)), *spatial)
    build.add(Copy((batch, group, rows, *counts), read, write), [product], y, step="output")


@expansion(Im2col, "map", source="chellapilla06", default=True)
def im2col_map(op: CanonicalNode[Im2col], build: MapFragment) -> None:
    """``cols[g, (c, k…), (b, y…)] = X[b, g*channels + c, stride*y + dilation*k …]``: one task, row by row."""
    x, cols, given = op.input(0), op.output(), op.operator
    group = given.group
    windows = Windows(given.kernel, given.strides, given.dilations, (), (), given.counts)
    channels = x.shape[1] // group
    elements = dict(zip(windows.kernel_names, windows.kernel, strict=True))
    positions = dict(zip(windows.window_names, windows.counts, strict=True))
    row = linear_index(["c", *elements], (channels, *windows.kernel))
    column = linear_index(["b", *positions], (x.shape[0], *windows.counts))
    build.map(
        "",
        loops={"g": group, "c": channels, **elements, "b": x.shape[0], **positions},
        reads={"x": (x, ["b", linear_index(["g", "c"], (group, channels)), *windows.positions()])},
        write=(cols, ["g", row, column] if group > 1 else [row, column]),
        code="x",
    )


def _is_grouped(op: Operator) -> bool:
    """Of a group the matrices of im2col are small: of a depthwise convolution one row, a few products per task."""
    return op.integer("group", 1) > 1


@onnx_expansion("Conv", "direct", source="onnx", default=_is_grouped)
def direct(op: Operator, build: CanonicalFragment) -> None:
    """One canonical Convolution on the tensors as they are, then the bias; the default with groups (depthwise)."""
    w, y, bias = op.input(1), op.output(), op.optional_input(2)
    windows = windows_of(op, w.shape[2:])
    product = y if bias is None else build.array("product", y.shape, sum_dtype(y.dtype))
    convolution = Convolution(windows.strides, windows.dilations, op.integer("group", 1))
    build.add(convolution, [_padded(op, build, windows), w], product, step="convolution")
    if bias is not None:
        build.add(Elementwise("a + b", (tuple(range(y.rank)), (1,))), [product, bias], y, step="bias")


@expansion(Convolution, "filters", source="onnx", default=True)
def convolution_per_filter(op: CanonicalNode[Convolution], build: MapFragment) -> None:
    """One task per filter, which reads every window of its channels once per element of the filter."""
    x, w, y = op.input(0), op.input(1), op.output()
    group = op.operator.group
    rows, channels = w.shape[0] // group, w.shape[1]
    windows = Windows(w.shape[2:], op.operator.strides, op.operator.dilations, (), (), y.shape[2:])
    elements = dict(zip(windows.kernel_names, windows.kernel, strict=True))
    positions = dict(zip(windows.window_names, windows.counts, strict=True))
    output = linear_index(["g", "r"], (group, rows))
    build.map(
        "filters",
        spatial={"g": group, "r": rows},
        loops={"b": x.shape[0], **positions, "c": channels, **elements},
        reads={
            "x": (x, ["b", linear_index(["g", "c"], (group, channels)), *windows.positions()]),
            "w": (w, [output, "c", *elements]),
        },
        write=(y, ["b", output, *positions]),
        code="x * w",
        accumulate=Reduction.SUM,
    )


def linear_index(names: list[str], extents: tuple[int, ...]) -> str:
    """Return the row-major linear index of several loops as one affine expression.

    >>> linear_index(["c", "y", "x"], (3, 5, 7))
    '35*c + 7*y + x'
    """
    terms = []
    for axis, name in enumerate(names):
        stride = prod(extents[axis + 1 :])
        terms.append(name if stride == 1 else f"{stride}*{name}")
    return " + ".join(terms)

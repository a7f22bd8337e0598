"""Convolution ``Y[b, o, y…] = bias[o] + sum_{c, k…} X[b, c, stride*y + dilation*k …] * W[o, c, k…]``.

Any number of spatial dimensions, strides, padding, dilation and groups.
"""

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.expansions.own_loops import add_scope
from dfcompile.lowering.expressions import product_of, sum_dtype
from dfcompile.lowering.nests.affine import linear_index
from dfcompile.lowering.operators import Convolution, Copy, Im2col, MatMul, Reduction, TransposedConvolution
from dfcompile.lowering.operators.convolution import window_places
from dfcompile.lowering.tensor import Tensor
from dfcompile.lowering.windows import windows_of


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

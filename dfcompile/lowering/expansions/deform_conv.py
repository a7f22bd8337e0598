"""ONNX DeformConv: a convolution that reads between the elements, where the model says."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_real, sum_dtype
from dfcompile.lowering.operators import MatMul, Sample
from dfcompile.lowering.sampled_points import AxisTaps, add_flat_places, add_weights, taps_beside
from dfcompile.lowering.windows import Windows, windows_of


@onnx_expansion("DeformConv", "columns", default=True)
def deform_conv(op: Operator, build: CanonicalFragment) -> None:
    """``cols[n, c, (k, y)] = mask * X[n, c, between the four elements around]``, ``Y = W @ cols``, then the bias.

    Places and weights are computed per group of offsets, whose channels share them.
    """
    x, w, offset, bias, y = op.input(0), op.input(1), op.input(2), op.optional_input(3), op.output()
    op.refuse_if(x.rank != 4 or not is_real(x.dtype), f"data {x} against four dimensions of real numbers")
    windows, group = windows_of(op, w.shape[2:]), op.integer("group", 1)
    offset_group = op.integer("offset_group", 1)
    batch, channels, taps_count, count = x.shape[0], x.shape[1], prod(w.shape[2:]), prod(windows.counts)
    # The operands that ONNX's inference does not look at.
    if min(group, offset_group) < 1 or channels % offset_group or channels != w.shape[1] * group:
        raise op.unsupported(f"{channels} channels, {group} groups, {offset_group} groups of offsets")
    if w.shape[0] % group or (bias is not None and bias.shape != w.shape[:1]):
        raise op.unsupported(f"{w.shape[0]} filters against a multiple of {group} groups and one bias each")
    wanted, mask = (batch, offset_group * taps_count, *windows.counts), op.optional_input(4)
    if offset.shape != (wanted[0], 2 * wanted[1], *wanted[2:]) or (mask is not None and mask.shape != wanted):
        raise op.unsupported(f"offsets or mask against {list(wanted)} places of two coordinates")
    groups, points = batch * offset_group, taps_count * count
    given = build.view(offset, "offsets", (groups, taps_count, 2, count))
    taps = [_axis_taps(build, given, windows, x.shape[2 + axis], axis) for axis in (0, 1)]
    factor = None if mask is None else (build.view(mask, "masks", (groups, points)), (0, 1))
    shape = (groups, points, 2, 2)
    places = build.view(add_flat_places(build, taps, shape), "place_rows", (groups, points, 4))
    weights = build.view(add_weights(build, taps, shape, factor), "weight_rows", (groups, points, 4))
    table = build.view(x, "table", (groups, channels // offset_group, prod(x.shape[2:]), 1))
    shape_of_samples = (groups, channels // offset_group, points, 1)
    sampled = build.made("sampled", Sample(), [table, places, weights], shape_of_samples, step="sample")
    window = channels // group * taps_count
    cols = build.view(sampled, "cols", (batch, group, window, count))
    filters = build.view(w, "filters", (1, group, w.shape[0] // group, window))
    rows, dtype = (batch, group, w.shape[0] // group, count), y.dtype if bias is None else sum_dtype(y.dtype)
    product = build.made("product", MatMul(), [filters, cols], rows, dtype, step="matmul")
    if bias is None:
        build.view_as(product, y)
    else:
        sums = build.view(product, "rows", y.shape)
        build.elementwise("a + b", [sums, bias], y, axes=[(0, 1, 2, 3), (1,)], step="bias")


def _axis_taps(build: CanonicalFragment, offsets: Tensor, windows: Windows, extent: int, axis: int) -> AxisTaps:
    """Return the two elements on both sides of each point along an axis, each ``[n, p, 2]``."""
    groups, taps_count, _, count = offsets.shape
    kernel = np.indices(windows.kernel)[axis].ravel() * windows.dilations[axis]
    corner = np.indices(windows.counts)[axis].ravel() * windows.strides[axis] - windows.pads_begin[axis]
    dtype = sum_dtype(offsets.dtype)
    given = build.copied(f"given{axis}", offsets, ("i0", "i1", str(axis), "i2"), (groups, taps_count, count))
    base = build.parameter(f"base{axis}", (kernel[:, None] + corner).astype(dtype))
    at = build.computed(f"at{axis}", "a + b", [given, base], given.shape, dtype)
    coordinate = build.view(at, f"coordinate{axis}", (groups, taps_count * count))
    place = "floor(a) + b"
    code = f"{place} if {place} >= 0 and {place} < {extent} else -1", "1 - abs(a - floor(a) - b)"
    return taps_beside(build, coordinate, (axis, extent), code, (0, 1, 2 + axis))

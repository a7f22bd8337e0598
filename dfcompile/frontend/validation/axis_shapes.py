"""Shape rules of operators along axes, such as Concat, Gather or ReduceSum: valid axes, fitting extents and indices."""

from collections.abc import Mapping
from functools import partial
from math import prod
from operator import methodcaller

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.known_shapes import Shape, require, shape_text, window_counts
from dfcompile.frontend.validation.operands import Check, Operands

_ALONG_ONE_AXIS = 13  # version since which Softmax and its like normalise along their axis, not over all from it on


def check_axes(operands: Operands) -> None:
    """Check that a list of axes names axes of the data, each once; Squeeze alone may repeat one.

    Raises:
        UserError: an axis is out of range, or named twice, such as by -2 and 2 of four.
    """
    op_type = operands.node.op_type
    axes = operands.numbers("axes", _AXES[op_type]) if op_type in _AXES else None
    if axes is None:
        return
    rank = len(operands.known(0)) + (len(axes) if op_type == "Unsqueeze" else 0)
    named = {operands.front_axis(axis, rank) for axis in axes}
    if len(named) != len(axes) and op_type != "Squeeze":
        is_attribute = "axes" in operands.attributes
        source = "attribute 'axes'" if is_attribute else f"{operands.label(_AXES[op_type])} (axes)"
        raise UserError(f"{source} is {list(axes)} against {len(axes)} different ones of {rank}")


def _check_concat(operands: Operands) -> None:
    known = operands.known_shapes()
    if not known:
        return
    first, expected = known[0]
    operands.expect_least_rank(first, 1)
    axis = operands.front_axis(operands.integer("axis"), len(expected), first)
    for position, shape in known[1:]:
        operands.expect_rank(position, len(expected))
        wanted = f"{shape_text(expected)} of {operands.label(first)} (all but axis {axis} must agree)"
        require(_without(shape, axis) == _without(expected, axis), operands.against(position, wanted))


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _check_split(operands: Operands) -> None:
    data, lengths = operands.known(0), operands.numbers("split", 1)
    axis = operands.axis(0, least=1)
    if lengths is not None:
        results = len(operands.node.output)
        require(len(lengths) == results, f"{len(lengths)} lengths against {results} results")
        is_whole = sum(lengths) == data[axis] and min(lengths) >= 0
        require(is_whole, f"lengths {list(lengths)} against {data[axis]} elements of axis {axis}")


def _check_running_sum(operands: Operands) -> None:
    operands.expect_least_rank(0, 1)
    for axis in operands.numbers("", 1) or ():
        operands.front_axis(axis, len(operands.shape(0) or (1,)))  # a scalar counts as a vector


def _check_blocks(operands: Operands) -> None:
    size = operands.integer("blocksize")
    require(size >= 1, f"attribute 'blocksize' is {size} against at least 1")
    _, channels, *image = operands.known(0, 4)
    if operands.node.op_type == "DepthToSpace":
        wanted = f"a multiple of {size**2} (blocks of {size}×{size})"
        require(not channels % size**2, f"{channels} channels against {wanted}")
    else:
        is_whole = not any(extent % size for extent in image)
        require(is_whole, f"images of {shape_text(image)} against blocks of {size}×{size}")


def _check_numbers_per_axis(noun: str, per_axis: int, operands: Operands) -> None:
    """Check the length of the second operand: pads (two per axis), or repeats of Tile; Pad may list axes as well."""
    count, numbers = len(operands.known(0)), operands.known(1)
    axes = operands.shape(3) if operands.node.op_type == "Pad" else None
    if axes is not None and len(axes) == 1:
        count = axes[0]
    if len(numbers) == 1:
        require(numbers[0] == per_axis * count, f"{numbers[0]} {noun} against {per_axis * count} ({count} axes)")


def _check_one_hot(operands: Operands) -> None:
    operands.expect_vector(2, 2, "values (off, on)")
    operands.front_axis(operands.integer("axis", -1), len(operands.known(0)) + 1)


def _check_transpose(operands: Operands) -> None:
    rank, order = len(operands.known(0)), operands.integers("perm")
    if order is not None:
        is_order = sorted(order) == list(range(rank))
        require(is_order, f"attribute 'perm' is {list(order)} against an order of {rank} axes")


def _check_indices_along(operands: Operands, axis: int) -> None:
    """Check that constant indices, the second operand, are within an axis of the data, the first one."""
    extent = operands.known(0)[axis]
    for index in operands.numbers("", 1) or ():
        is_within = -extent <= index < extent
        require(is_within, f"index {index} against {extent} elements of axis {axis} of {operands.label(0)}")


def _check_extents_within_data(operands: Operands, position: int, axis: int) -> None:
    """Check that an operand is no larger than the data along any axis but the given one."""
    data, shape = operands.known(0), operands.expect_rank(position, len(operands.known(0)))
    for other, (extent, limit) in enumerate(zip(shape or (), data, strict=False)):
        if other != axis and extent > limit:
            wanted = f"{shape_text(data)} of {operands.label(0)} (along axis {other} no more than it has)"
            raise UserError(operands.against(position, wanted))


def _check_gather(operands: Operands) -> None:
    _check_indices_along(operands, operands.axis(0, least=1))


def _check_gather_elements(operands: Operands) -> None:
    operands.known(1)
    axis = operands.axis(0)
    operands.expect_rank(1, len(operands.known(0)))
    _check_gather(operands)
    _check_extents_within_data(operands, 1, axis)


def _check_scatter_elements(operands: Operands) -> None:
    axis = operands.axis(0, least=1)
    for position in (1, 2):
        _check_extents_within_data(operands, position, axis)
    if (indices := operands.shape(1)) is not None:
        operands.expect(2, indices, wanted=f"{shape_text(indices)} indices")
    _check_indices_along(operands, axis)


def _check_index_length(operands: Operands, axes: int) -> None:
    """Check that each index tuple, a last dimension of the second operand, has one number to one per axis."""
    length = operands.known(1)[-1]
    is_length = 1 <= length <= axes
    require(is_length, f"indices of {length} dimensions against 1 to {axes} of {operands.label(0)}")


def _check_index_values(operands: Operands, extents: Shape) -> None:
    """Check that constant index tuples are within the extents of the axes that they index."""
    constant = operands.constants[1]
    if constant is None or not constant.size:
        return
    for index in np.asarray(constant).reshape(-1, len(extents)).tolist():
        is_within = all(-extent <= number < extent for number, extent in zip(index, extents, strict=True))
        require(is_within, f"index {index} against {shape_text(extents)} elements of {operands.label(0)}")


def _check_scatter_nd(operands: Operands) -> None:
    data, indices = operands.known_at_least(0, 1), operands.known_at_least(1, 1)
    _check_index_length(operands, len(data))
    operands.expect(2, (*indices[:-1], *data[indices[-1] :]))
    _check_index_values(operands, data[: indices[-1]])


def _check_gather_nd(operands: Operands) -> None:
    data, indices = operands.known_at_least(0, 1), operands.known_at_least(1, 1)
    batch = operands.integer("batch_dims")
    is_common = 0 <= batch < min(len(data), len(indices)) and data[:batch] == indices[:batch]
    wanted = f"those of {shape_text(indices)} of {operands.label(1)}"
    require(is_common, f"{batch} batch dimensions of {shape_text(data)} against {wanted}")
    _check_index_length(operands, len(data) - batch)
    _check_index_values(operands, data[batch : batch + indices[-1]])


def _check_tensor_scatter(operands: Operands) -> None:
    data, updates = operands.known_at_least(0, 2), operands.known(1)
    operands.expect_rank(1, len(data))
    axis = operands.axis(-2)
    require(axis != 0, "axis 0 against one behind that of the batch")
    is_slice = updates[axis] <= data[axis] and _without(updates, axis) == _without(data, axis)
    wanted = f"{shape_text(data)} of {operands.label(0)} (along axis {axis} no more, else the same)"
    require(is_slice, operands.against(1, wanted))
    operands.expect_vector(2, data[0], "places")


def _check_top_k(operands: Operands) -> None:
    data, wanted = operands.known(0), operands.numbers("", 1)
    axis = operands.axis(-1, least=1)
    if wanted is not None:
        is_count = len(wanted) == 1 and 0 <= wanted[0] <= data[axis]
        require(is_count, f"K is {list(wanted)} against one number up to {data[axis]} of axis {axis}")


def _check_reverse_sequence(operands: Operands) -> None:
    data = operands.known_at_least(0, 2)
    batch, time = operands.integer("batch_axis", 1), operands.integer("time_axis", 0)
    require({batch, time} == {0, 1}, f"batch axis {batch} and time axis {time} against 0 and 1")
    operands.expect_vector(1, data[batch], "lengths")
    for length in operands.numbers("", 1) or ():
        require(0 <= length <= data[time], f"length {length} against 0 to {data[time]}")


def _check_windows_of_image(operands: Operands) -> None:
    data, image, kernel = operands.known(0, 3), operands.numbers("", 1), operands.numbers("", 2)
    if image is None or kernel is None:
        return
    rank = len(image)
    strides, dilations = (operands.integers(name) or (1,) * rank for name in ("strides", "dilations"))
    pads = operands.integers("pads") or (0,) * (2 * rank)
    is_complete = len(kernel) == len(strides) == len(dilations) == rank and len(pads) == 2 * rank
    require(is_complete, f"blocks, strides, dilations and pads against those of {rank} dimensions")
    is_in_range = min((*kernel, *strides, *dilations), default=1) >= 1 and min(pads, default=0) >= 0
    require(is_in_range, "blocks, strides and dilations of at least 1 and pads of at least 0 against others")
    counts = list(window_counts(operands.node, image, kernel) or ())
    is_whole = min(counts, default=1) >= 1 and data[2] == prod(counts) and not data[1] % prod(kernel)
    require(is_whole, operands.against(0, f"{counts} blocks of {shape_text(kernel)} per channel"))


def _check_selection(operands: Operands) -> None:
    operands.expect_rank(1, 1)
    data, (count,) = operands.known(0), operands.known(1)
    if "axis" in operands.attributes:
        axis = operands.axis(0)
        require(count <= data[axis], f"{count} conditions against {data[axis]} elements of axis {axis}")


_KINDS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
REDUCTIONS = tuple(f"Reduce{kind}" for kind in _KINDS.split())
# Position of the list of axes for operators that take it as an operand in some version; else beyond all operands.
_NO_OPERAND = 9
_AXES: Mapping[str, int] = {
    **dict.fromkeys(("CenterCropPad", "MeanVarianceNormalization", "Resize"), _NO_OPERAND),
    **dict.fromkeys(("Pad", "Slice"), 3),
    **dict.fromkeys(("Squeeze", "Unsqueeze", *REDUCTIONS), 1),
}
AXIS_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), methodcaller("axis", 0)),
    "Concat": _check_concat,
    **dict.fromkeys(("CumProd", "CumSum"), _check_running_sum),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _check_blocks),
    "LpNormalization": methodcaller("axis", -1),
    "OneHot": _check_one_hot,
    "Pad": partial(_check_numbers_per_axis, "pads", 2),
    "Split": _check_split,
    "Tile": partial(_check_numbers_per_axis, "repeats", 1),
    "Transpose": _check_transpose,
    **dict.fromkeys(
        ("Hardmax", "LogSoftmax", "Softmax"),
        lambda operands: operands.axis(-1 if operands.opset >= _ALONG_ONE_AXIS else 1),
    ),
    "Col2Im": _check_windows_of_image,
    "Compress": _check_selection,
    "Gather": _check_gather,
    "GatherElements": _check_gather_elements,
    "GatherND": _check_gather_nd,
    "ReverseSequence": _check_reverse_sequence,
    **dict.fromkeys(("Scatter", "ScatterElements"), _check_scatter_elements),
    "ScatterND": _check_scatter_nd,
    "TensorScatter": _check_tensor_scatter,
    "TopK": _check_top_k,
}

"""Shapes of layers: matrices, convolutions and pooling, attention, normalisations and losses.

ONNX defines many of them by other operators, and the definitions broadcast what does not belong together.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller

from dfcompile.errors import UserError
from dfcompile.frontend.einsum_equation import read_equation
from dfcompile.frontend.onnx.known_shapes import Shape, broadcast_together, require, shape_text
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to

_PADDINGS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
_MOMENT_AXES = (0, 2, 3)  # of MeanVarianceNormalization by default: all but the channels of an image
_GROUP_PARAMETERS_PER_CHANNEL = 21  # version of the operators since which that is so


def _check_attention(operands: Operands) -> None:
    """``Q[b, s, n * h]``, ``K[b, l, g * h]`` and ``V[b, l, g * w]``; or ``[b, n, s, h]`` and so on, by head."""
    operands.expect_numbers_at_least({"softcap": 0})  # 0: no cap; of a negative one implementations do different things
    data = operands.known(0, 3, 4)
    operands.expect_vector(6, data[0], "batches")
    for position in (1, 2):
        shape = operands.expect_rank(position, len(data))
        if shape is not None:
            found = f"{operands.label(position)} has {shape[0]} batches"
            require(shape[0] == data[0], f"{found} against {data[0]} of {operands.label(0)}")
    counts = ("q_num_heads", "kv_num_heads", "kv_num_heads")
    query, key, value = (_by_head(operands, at, count) for at, count in enumerate(counts))
    if query is None or key is None or value is None:
        return
    batch, heads, length, width = query
    groups, keys = key[1:3]
    if (key[3], *value[1:3]) != (width, groups, keys):
        texts = [f"{operands.label(at)} {shape_text(shape)}" for at, shape in enumerate((query, key, value))]
        wanted = f"as many keys as values of as many heads, keys as wide as {texts[0]} (batches, heads, length, width)"
        raise UserError(f"{texts[1]} and {texts[2]} against {wanted}")
    past = operands.expect_rank(4, 4)
    before = 0 if past is None else past[2]
    operands.expect(4, (batch, groups, before, width))
    operands.expect(5, (batch, groups, before, value[3]))
    # What the mask has fewer keys than the scores is as if it left them out.
    scores, mask = (batch, heads, length, before + keys), operands.known(3)
    is_fit = mask and mask[-1] <= scores[-1] and broadcasts_to(mask[:-1], scores[:-1])
    require(is_fit, operands.against(3, f"{shape_text(scores)} scores"))


def _by_head(operands: Operands, position: int, count: str) -> Shape | None:
    """Return the shape of an operand as ``[b, n, s, h]``, None if it is not known.

    Raises:
        UserError: its columns are not those of so many heads.
    """
    shape = operands.shape(position)
    if shape is None or len(shape) == 4:
        return shape
    return shape[0], operands.integer(count), shape[1], operands.per_head(position, shape[2], count)


def _check_rotary_embedding(operands: Operands) -> None:
    """``X[b, s, n * h]`` or ``[b, n, s, h]``; tables ``[b, s, r / 2]``, or ``[all, r / 2]`` and places ``[b, s]``."""
    cosine, sine = operands.shape(1), operands.shape(2)
    if cosine is not None and sine is not None and cosine != sine:
        raise UserError(operands.against(1, f"{shape_text(sine)} of {operands.label(2)}"))
    by_position = operands.has(3)
    for position in (1, 2):
        operands.expect_rank(position, 2 if by_position else 3)
    if cosine is not None:
        require(cosine[-1], operands.against(1, "at least one angle"))
    data = operands.known(0, 3, 4)
    length = data[1] if len(data) == 3 else data[2]
    tokens = dict.fromkeys([(data[0], length), (1, length)])
    if by_position:
        operands.expect(3, *tokens)
    elif cosine is not None:
        operands.expect(1, *((*shape, cosine[-1]) for shape in tokens))


def _check_loss(operands: Operands) -> None:
    """``scores[b, class, …]`` and ``labels[b, …]``, and one weight per class."""
    scores = operands.known_at_least(0, 2)
    expected = (scores[0], *scores[2:])
    operands.expect(1, expected, wanted=f"{shape_text(expected)} of {operands.label(0)}")
    operands.expect_vector(2, scores[1], "classes")


def _check_center_crop_pad(operands: Operands) -> None:
    axes = operands.integers("axes")
    operands.expect_vector(1, len(operands.known(0) if axes is None else axes), "sizes")


def _check_channel_parameters(least_rank: int, operands: Operands) -> None:
    channels = operands.known_at_least(0, least_rank)[1]
    for position in range(1, len(operands.node.input)):
        operands.expect_vector(position, channels, "channels")


def _check_group_normalization(operands: Operands) -> None:
    groups = operands.integer("num_groups")
    require(groups >= 1, f"attribute 'num_groups' is {groups} against at least 1")
    channels = operands.known_at_least(0, 3)[1]
    require(not channels % groups, f"{channels} channels against a multiple of {groups} groups")
    is_per_channel = operands.opset >= _GROUP_PARAMETERS_PER_CHANNEL
    for position in (1, 2):
        operands.expect_vector(position, *((channels, "channels") if is_per_channel else (groups, "groups")))


def _check_last_axes(operands: Operands) -> None:
    normalised = operands.known(0)[operands.axis(-1) :]
    for position, shape in operands.known_shapes()[1:]:
        wanted = f"{shape_text(normalised)} normalised elements of {operands.label(0)}"
        require(broadcasts_to(shape, normalised), operands.against(position, wanted))


def _check_moments(operands: Operands) -> None:
    rank, axes = len(operands.known_at_least(0, 1)), operands.integers("axes")
    require(axes != (), "attribute 'axes' is [] against at least one axis")
    for axis in _MOMENT_AXES if axes is None else ():
        operands.front_axis(axis, rank)


def _check_gemm(operands: Operands) -> None:
    operands.known(1)
    left, right = operands.known(0, 2), operands.known(1, 2)
    rows, inner = left[::-1] if operands.integer("transA") else left
    other, columns = right[::-1] if operands.integer("transB") else right
    _check_inner(operands, inner, other)
    require(broadcasts_to(operands.known(2), (rows, columns)), operands.against(2, f"a product of {rows}×{columns}"))


def _check_matmul(operands: Operands) -> None:
    left, right = operands.known(0), operands.known(1)
    for position, shape in enumerate((left, right)):
        require(shape, f"{operands.label(position)} is a scalar against a matrix")
    _check_inner(operands, left[-1], right[-2] if len(right) > 1 else right[0])
    found = f"batches of {shape_text(left[:-2])} in {operands.label(0)}"
    wanted = f"{shape_text(right[:-2])} in {operands.label(1)}"
    require(broadcast_together(left[:-2], right[:-2]), f"{found} against {wanted}")


def _check_inner(operands: Operands, inner: int, other: int) -> None:
    found = f"{operands.label(0)} has an inner dimension of {inner}"
    require(inner == other, f"{found} against {other} of {operands.label(1)}")


def _check_quantised(operands: Operands) -> None:
    """One scale and zero point for all, or one per row of the left operand or column of the right one."""
    for matrix, positions, axis in ((0, (1, 2), -2), (3, (4, 5), -1)):
        shape = operands.shape(matrix)
        if shape is None or len(shape) < 2:
            continue
        for position in positions:
            if len(operands.shape(position) or ()) == 1:
                wanted = f"1 or {shape[axis]} of {operands.label(matrix)}"
                operands.expect(position, (1,), (shape[axis],), wanted=wanted)


def _check_filter_steps(filters: int, for_all: Sequence[int], of_filters: Sequence[int], operands: Operands) -> None:
    """Check a convolution of integers: one scale or zero point for all, of filters perhaps one for each.

    Args:
        filters: position of the operand.
        for_all: positions of scales and zero points for all.
        of_filters: positions of those of the filters.
        operands: of the node.
    """
    weights = operands.shape(filters)
    if weights is not None and operands.shape(0) is not None:
        _check_groups(operands, filters)
    for position in (*for_all, *of_filters):
        count = weights[0] if weights and position in of_filters else 1
        wanted = "one element" if count == 1 else f"one or {count} elements"
        operands.expect(position, (), (1,), (count,), wanted=wanted)


def _check_einsum(operands: Operands) -> None:
    shapes = [operands.shape(position) for position in range(len(operands.node.input))]
    read_equation(operands.text("equation", ""), shapes, operands.label)


def _check_groups(operands: Operands, filters: int) -> None:
    """The channels of the data are those of the filters of all groups, and each group has as many filters.

    Raises:
        UnknownShapeError: the shape of the data or of the filters is not known.
        UserError: they are not.
    """
    data, weights, group = operands.known(0), operands.known(filters), operands.integer("group", 1)
    if len(data) < 2 or len(weights) < 2:
        return
    found = f"input {operands.label(0)} has {data[1]} channels"
    is_fit = group >= 1 and data[1] == weights[1] * group
    require(is_fit, f"{found} against weights for {weights[1] * group} (groups {group})")
    require(not weights[0] % group, f"{weights[0]} filters against a multiple of {group} groups")


def _check_convolution(operands: Operands) -> None:
    rank, weights = _check_filters(operands)
    _check_groups(operands, 1)
    _check_kernel(operands, weights)
    _check_windows(operands, rank - 2)
    operands.expect_vector(2, weights[0], "filters")


def _check_transposed_convolution(operands: Operands) -> None:
    rank, weights = _check_filters(operands)
    channels, *data = operands.known(0)[1:]
    group = operands.integer("group", 1)
    found = f"input {operands.label(0)} has {channels} channels"
    require(channels == weights[0], f"{found} against weights for {weights[0]}")
    require(not channels % group, f"{channels} channels against a multiple of {group} groups")
    _check_kernel(operands, weights)
    _check_windows(operands, rank - 2)
    # The padding of the result, and its size if that is given, are such that these data give it.
    strides, dilations = (operands.integers(name) or (1,) * len(data) for name in ("strides", "dilations"))
    _check_entries(operands, len(data), {"output_padding": 1, "output_shape": 1})
    for axis, padding in enumerate(operands.integers("output_padding") or ()):
        most = max(strides[axis], dilations[axis])
        require(padding < most, f"attribute 'output_padding' has {padding} against less than {most}")
    for axis, size in enumerate(operands.integers("output_shape") or ()):
        # A remainder of the stride is left open by the sizes: output padding.
        most = strides[axis] * data[axis] + dilations[axis] * (weights[2 + axis] - 1)
        require(size <= most, f"attribute 'output_shape' has {size} against at most {most} that the data can give")
    operands.expect_vector(2, weights[1] * group, "filters")


def _check_filters(operands: Operands) -> tuple[int, Shape]:
    """Return how many dimensions the data of a convolution have, and the shape of its filters, which have as many."""
    rank, weights = len(operands.known(0)), operands.known(1)
    operands.expect_rank(1, rank)
    operands.expect_least_rank(0, 3)
    return rank, weights


def _check_pooling(operands: Operands) -> None:
    data, kernel = operands.shape(0), operands.integers("kernel_shape")
    operands.expect_least_rank(0, 3)
    if kernel is None:
        raise UserError("attribute 'kernel_shape' is missing")
    rank = len(kernel) if data is None else len(data) - 2
    _check_windows(operands, rank)
    _check_same(operands, kernel)
    for at, pad in enumerate(operands.integers("pads") or ()):
        size = kernel[at % rank]
        found = f"attribute 'pads' has {pad} against less than the window's {size}"
        require(pad < size, f"{found} (a window may not lie in the padding alone)")


def _check_same(operands: Operands, kernel: Shape) -> None:
    """What SAME means is agreed upon only where it is padding, and no window is stretched."""
    data = operands.shape(0)
    if data is None or not operands.text("auto_pad", "NOTSET").startswith("SAME"):
        return
    found = "attribute 'auto_pad' is SAME and 'dilations' are not 1"
    wanted = "pads in numbers (onnxruntime and ONNX's definition then pad differently)"
    require(max(operands.integers("dilations") or (1,)) <= 1, f"{found} against {wanted}")
    strides = operands.integers("strides") or (1,) * len(kernel)
    for extent, size, stride in zip(data[2:], kernel, strides, strict=True):
        # onnxruntime then begins within the data, or refuses it.
        is_covered = (-(-extent // stride) - 1) * stride + size >= extent
        windows = f"windows of {size} at a distance of {stride}"
        require(is_covered, f"{windows} against {extent} elements to cover (SAME)")


def _check_kernel(operands: Operands, weights: Shape) -> None:
    kernel = operands.integers("kernel_shape")
    if kernel is not None and kernel != weights[2:]:
        raise UserError(f"attribute 'kernel_shape' is {shape_text(kernel)} against {shape_text(weights[2:])} weights")


def _check_windows(operands: Operands, rank: int) -> None:
    _check_entries(operands, rank, {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2})
    auto_pad, pads = operands.text("auto_pad", "NOTSET"), operands.integers("pads")
    known = f"{', '.join(_PADDINGS[:-1])} or {_PADDINGS[-1]}"
    require(auto_pad in _PADDINGS, f"attribute 'auto_pad' is {auto_pad!r} against {known}")
    if auto_pad == "VALID" and "output_shape" in operands.attributes:
        raise UserError("attribute 'auto_pad' is VALID, which has no pads, against those of 'output_shape'")
    # VALID says the same as pads of 0; SAME_UPPER and SAME_LOWER say something else.
    if auto_pad != "NOTSET" and pads is not None and (auto_pad != "VALID" or any(pads)):
        raise UserError(f"attribute 'auto_pad' is {auto_pad} and 'pads' is {list(pads)} against one of the two")


def _check_entries(operands: Operands, rank: int, factors: Mapping[str, int]) -> None:
    """Check that attributes have one entry, or so many, for each spatial dimension."""
    for name, factor in factors.items():
        entries = operands.integers(name)
        if entries is not None and len(entries) != factor * rank:
            raise UserError(f"attribute {name!r} has {len(entries)} entries against {factor * rank}")


WINDOWED: Mapping[str, Check] = {
    "Conv": _check_convolution,
    "ConvTranspose": _check_transposed_convolution,
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _check_pooling),
    **dict.fromkeys(
        ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LRN"), methodcaller("expect_least_rank", 0, 3)
    ),
}
LAYER_CHECKS: Mapping[str, Check] = {
    "Attention": _check_attention,
    "BatchNormalization": partial(_check_channel_parameters, 2),
    "CenterCropPad": _check_center_crop_pad,
    "GroupNormalization": _check_group_normalization,
    "InstanceNormalization": partial(_check_channel_parameters, 3),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _check_last_axes),
    "MeanVarianceNormalization": _check_moments,
    "RotaryEmbedding": _check_rotary_embedding,
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _check_loss),
    "ConvInteger": partial(_check_filter_steps, 1, (2,), (3,)),
    "Einsum": _check_einsum,
    "Gemm": _check_gemm,
    "MatMul": _check_matmul,
    "QLinearConv": partial(_check_filter_steps, 3, (1, 2, 6, 7), (4, 5)),
    "QLinearMatMul": _check_quantised,
    **WINDOWED,
}
WINDOW_LEAST: Mapping[str, int] = {
    **dict.fromkeys(("strides", "dilations", "kernel_shape", "group", "output_shape", "size"), 1),
    **dict.fromkeys(("pads", "output_padding"), 0),
}

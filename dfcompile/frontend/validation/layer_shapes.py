"""Shapes of layers: attention, normalisations and losses.

Most of them ONNX defines by other operators, and the definitions broadcast what does not belong together.
"""

from collections.abc import Mapping, Sequence

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.known_shapes import Shape, require, shape_text
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to

_MOMENT_AXES = (0, 2, 3)  # of MeanVarianceNormalization by default: all but the channels of an image
_GROUP_PARAMETERS_PER_CHANNEL = 21  # version of the operators since which that is so


def _check_attention(operands: Operands) -> None:
    """``Q[b, s, n * h]``, ``K[b, l, g * h]`` and ``V[b, l, g * w]``; or ``[b, n, s, h]`` and so on, by head."""
    operands.expect_numbers_at_least({"softcap": 0})  # 0: no cap; of a negative one implementations do different things
    query = operands.known(0)
    _check_three_or_four(operands)
    operands.expect_vector(6, query[0], "batches")
    for position in (1, 2):
        shape = operands.expect_rank(position, len(query))
        if shape is not None:
            found = f"{operands.label(position)} has {shape[0]} batches"
            require(shape[0] == query[0], f"{found} against {query[0]} of {operands.label(0)}")
    counts = ("q_num_heads", "kv_num_heads", "kv_num_heads")
    _check_heads(operands, [_by_head(operands, at, count) for at, count in enumerate(counts)])


def _check_three_or_four(operands: Operands) -> None:
    rank = len(operands.known(0))
    require(rank in (3, 4), f"{operands.label(0)} has {rank} dimensions against 3 or 4")


def _by_head(operands: Operands, position: int, count: str) -> Shape | None:
    """Return the shape of an operand as ``[b, n, s, h]``, None if it is not known.

    Raises:
        UserError: its columns are not those of so many heads.
    """
    shape = operands.shape(position)
    if shape is None or len(shape) == 4:
        return shape
    width = operands.per_head(position, shape[2], count)
    return shape[0], operands.integer(count), shape[1], width


def _check_heads(operands: Operands, by_head: Sequence[Shape | None]) -> None:
    query, key, value = by_head
    if query is None or key is None or value is None:
        return
    batch, heads, length, width = query
    groups, keys = key[1:3]
    if (key[3], *value[1:3]) != (width, groups, keys):
        texts = [f"{operands.label(at)} {shape_text(shape)}" for at, shape in enumerate((query, key, value))]
        raise UserError(
            f"{texts[1]} and {texts[2]} against as many keys as values of as many heads, keys as wide as {texts[0]} "
            "(batches, heads, length, width)"
        )
    past = operands.expect_rank(4, 4)
    before = 0 if past is None else past[2]
    operands.expect(4, (batch, groups, before, width))
    operands.expect(5, (batch, groups, before, value[3]))
    # What the mask has fewer keys than the scores is as if it left them out.
    scores, mask = (batch, heads, length, before + keys), operands.known(3)
    is_fit = mask and mask[-1] <= scores[-1] and broadcasts_to(mask[:-1], scores[:-1])
    require(is_fit, operands.against(3, f"{shape_text(scores)} scores"))


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
    data = operands.known(0)
    _check_three_or_four(operands)
    length = data[1] if len(data) == 3 else data[2]
    tokens = dict.fromkeys([(data[0], length), (1, length)])
    if by_position:
        operands.expect(3, *tokens)
    elif cosine is not None:
        operands.expect(1, *((*shape, cosine[-1]) for shape in tokens))


def _check_loss(operands: Operands) -> None:
    """``scores[b, class, …]`` and ``labels[b, …]``, and one weight per class."""
    scores, labels = operands.known(0), operands.shape(1)
    require(len(scores) >= 2, f"{operands.label(0)} has {len(scores)} dimensions against at least 2")
    expected = (scores[0], *scores[2:])
    if labels is not None and labels != expected:
        raise UserError(operands.against(1, f"{shape_text(expected)} of {operands.label(0)}"))
    operands.expect_vector(2, scores[1], "classes")


def _check_center_crop_pad(operands: Operands) -> None:
    axes = operands.integers("axes")
    operands.expect_vector(1, len(operands.known(0) if axes is None else axes), "sizes")


def _check_channel_parameters(least_rank: int) -> Check:
    def check(operands: Operands) -> None:
        operands.expect_least_rank(0, least_rank)
        channels = operands.known(0)[1]
        for position in range(1, len(operands.node.input)):
            operands.expect_vector(position, channels, "channels")

    return check


def _check_group_normalization(operands: Operands) -> None:
    groups = operands.integer("num_groups")
    require(groups >= 1, f"attribute 'num_groups' is {groups} against at least 1")
    operands.expect_least_rank(0, 3)
    channels = operands.known(0)[1]
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
    rank, axes = len(operands.known(0)), operands.integers("axes")
    operands.expect_least_rank(0, 1)
    require(axes != (), "attribute 'axes' is [] against at least one axis")
    for axis in _MOMENT_AXES if axes is None else ():
        operands.front_axis(axis, rank)


LAYER_CHECKS: Mapping[str, Check] = {
    "Attention": _check_attention,
    "BatchNormalization": _check_channel_parameters(2),
    "CenterCropPad": _check_center_crop_pad,
    "GroupNormalization": _check_group_normalization,
    "InstanceNormalization": _check_channel_parameters(3),
    "LayerNormalization": _check_last_axes,
    "MeanVarianceNormalization": _check_moments,
    "NegativeLogLikelihoodLoss": _check_loss,
    "RMSNormalization": _check_last_axes,
    "RotaryEmbedding": _check_rotary_embedding,
    "SoftmaxCrossEntropyLoss": _check_loss,
}

"""Shapes of operators that ONNX defines by others: their definitions broadcast what does not belong together."""

from collections.abc import Callable, Mapping, Sequence

from dfcompile.frontend.validation.operands import (
    Operands,
    Shape,
    broadcasts_to,
    check_least,
    check_rank,
    check_vector,
    shape_text,
)


def _check_attention(operands: Operands) -> None:
    """``Q[b, s, n * h]``, ``K[b, l, g * h]`` and ``V[b, l, g * w]``; or ``[b, n, s, h]`` and so on, by head."""
    check_least(operands, {"softcap": 0})  # 0: no cap; of a negative one implementations make different things
    query = operands.shape(0)
    if query is None:
        return
    if len(query) not in (3, 4):
        raise operands.wrong(f"{operands.name(0)} has {len(query)} dimensions against 3 or 4")
    check_vector(operands, 6, query[0], "batches")
    for position in (1, 2):
        check_rank(operands, position, len(query))
        shape = operands.shape(position)
        if shape is not None and shape[0] != query[0]:
            raise operands.wrong(
                f"{operands.name(position)} has {shape[0]} batches against {query[0]} of {operands.name(0)}"
            )
    by_head = [_by_head(operands, at, name) for at, name in enumerate(("q_num_heads", "kv_num_heads", "kv_num_heads"))]
    if all(by_head):
        _check_heads(operands, by_head)


def _by_head(operands: Operands, position: int, count: str) -> Shape:
    """Return the shape of an operand as ``[b, n, s, h]``, nothing if it is not known.

    Raises:
        UserError: its columns are not those of so many heads.
    """
    shape = operands.shape(position)
    if shape is None or len(shape) == 4:
        return shape or ()
    heads = operands.integer(count, 0)
    if heads < 1 or shape[2] % heads:
        raise operands.wrong(
            f"{operands.name(position)} has {shape[2]} columns against a multiple of {count!r}, {heads}"
        )
    return shape[0], heads, shape[1], shape[2] // heads


def _check_heads(operands: Operands, by_head: Sequence[Shape]) -> None:
    (batch, heads, length, width), (_, groups, keys, key_width), (_, value_groups, values, value_width) = by_head
    if (key_width, value_groups, values) != (width, groups, keys):
        texts = [f"{operands.name(at)} {shape_text(shape)}" for at, shape in enumerate(by_head)]
        raise operands.wrong(
            f"{texts[1]} and {texts[2]} against as many keys as values of as many heads, keys as wide as {texts[0]} "
            "(batches, heads, length, width)"
        )
    past = operands.shape(4)
    if past is not None:
        check_rank(operands, 4, 4)
    before = 0 if past is None else past[2]
    _check_shape(operands, 4, [(batch, groups, before, width)])
    _check_shape(operands, 5, [(batch, groups, before, value_width)])
    _check_mask(operands, (batch, heads, length, before + keys))


def _check_mask(operands: Operands, scores: Shape) -> None:
    """The mask broadcasts to the scores; what it has fewer keys than these is as if it left them out."""
    mask = operands.shape(3)
    if mask is None:
        return
    if not mask or mask[-1] > scores[-1] or not broadcasts_to(mask[:-1], scores[:-1]):
        raise operands.wrong(f"{operands.name(3)} is {shape_text(mask)} against {shape_text(scores)} scores")


def _check_shape(operands: Operands, position: int, expected: Sequence[Shape]) -> None:
    shape = operands.shape(position)
    if shape is not None and shape not in expected:
        wanted = " or ".join(dict.fromkeys(map(shape_text, expected)))
        raise operands.wrong(f"{operands.name(position)} is {shape_text(shape)} against {wanted}")


def _check_rotary_embedding(operands: Operands) -> None:
    """``X[b, s, n * h]`` or ``[b, n, s, h]``; tables ``[b, s, r / 2]``, or ``[all, r / 2]`` and places ``[b, s]``."""
    data, cosine, sine = (operands.shape(position) for position in range(3))
    if cosine is not None and sine is not None and cosine != sine:
        raise operands.wrong(
            f"{operands.name(1)} is {shape_text(cosine)} against {shape_text(sine)} of {operands.name(2)}"
        )
    by_position = len(operands.node.input) > 3 and operands.node.input[3] != ""
    for position in (1, 2):
        check_rank(operands, position, 2 if by_position else 3)
    if cosine is not None and not cosine[-1]:
        raise operands.wrong(f"{operands.name(1)} is {shape_text(cosine)} against at least one angle")
    if data is None:
        return
    if len(data) not in (3, 4):
        raise operands.wrong(f"{operands.name(0)} has {len(data)} dimensions against 3 or 4")
    length = data[1] if len(data) == 3 else data[2]
    tokens = [(data[0], length), (1, length)]
    if by_position:
        _check_shape(operands, 3, tokens)
    elif cosine is not None:
        _check_shape(operands, 1, [(*each, cosine[-1]) for each in tokens])


def _check_loss(operands: Operands) -> None:
    """``scores[b, class, …]`` and ``labels[b, …]``, and one weight per class."""
    scores, labels = operands.shape(0), operands.shape(1)
    if scores is None:
        return
    if len(scores) < 2:
        raise operands.wrong(f"{operands.name(0)} has {len(scores)} dimensions against at least 2")
    expected = (scores[0], *scores[2:])
    if labels is not None and labels != expected:
        raise operands.wrong(
            f"{operands.name(1)} is {shape_text(labels)} against {shape_text(expected)} of {operands.name(0)}"
        )
    check_vector(operands, 2, scores[1], "classes")


def _check_center_crop_pad(operands: Operands) -> None:
    data, given = operands.shape(0), operands.shape(1)
    axes = operands.integers("axes")
    count = len(axes) if axes is not None else None if data is None else len(data)
    if given is not None and count is not None and given != (count,):
        raise operands.wrong(f"{operands.name(1)} is {shape_text(given)} against {count} sizes")


FUNCTION_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "Attention": _check_attention,
    "CenterCropPad": _check_center_crop_pad,
    "NegativeLogLikelihoodLoss": _check_loss,
    "RotaryEmbedding": _check_rotary_embedding,
    "SoftmaxCrossEntropyLoss": _check_loss,
}

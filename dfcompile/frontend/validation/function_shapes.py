"""Shapes of operators that ONNX defines by others: their definitions broadcast what does not belong together."""

from collections.abc import Callable, Mapping

from dfcompile.frontend.validation.operands import Operands, check_least, check_rank, check_vector, shape_text


def _check_attention(operands: Operands) -> None:
    check_least(operands, {"softcap": 0})  # 0: no cap; of a negative one implementations make different things
    query = operands.shape(0)
    if query is None:
        return
    if len(query) not in (3, 4):
        raise operands.wrong(f"{operands.name(0)} has {len(query)} dimensions against 3 or 4")
    for position in (1, 2):
        check_rank(operands, position, len(query))
        shape = operands.shape(position)
        if shape is not None and shape[0] != query[0]:
            raise operands.wrong(
                f"{operands.name(position)} has {shape[0]} batches against {query[0]} of {operands.name(0)}"
            )


def _check_rotary_embedding(operands: Operands) -> None:
    cosine, sine = operands.shape(1), operands.shape(2)
    if cosine is not None and sine is not None and cosine != sine:
        raise operands.wrong(
            f"{operands.name(1)} is {shape_text(cosine)} against {shape_text(sine)} of {operands.name(2)}"
        )


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

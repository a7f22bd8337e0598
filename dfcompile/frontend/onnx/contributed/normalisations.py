"""Contributed normalisations: of a sum with what skips a layer, and of embeddings."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import INTEGER, Call, ContributedOperator, Shape

_REALS = ("float32", "float16")


def _skip(call: Call) -> Mapping[str, Shape]:
    """``input[b, s, h]`` or ``[s, h]``; ``skip`` of the same shape, or one for all batches."""
    data = call.expect_rank("input", 2, 3)
    if data is None:
        return {}
    call.expect("skip", data, (1, *data[1:]), data[-2:])
    for name in ("gamma", "beta", "bias"):
        call.expect(name, data[-1:])
    kept = (*data[:-1], 1)
    return {"output": data, "mean": kept, "inv_std_var": kept, "input_skip_bias_sum": data}


def _layer(call: Call) -> Mapping[str, Shape]:
    data, axis = call.shape("X"), call.integer("axis", -1)
    if data is None:
        return {}
    if not -len(data) <= axis < len(data):
        raise UserError(f"axis {axis} against {len(data)} dimensions of 'X'")
    axis %= len(data)
    for name in ("scale", "B"):
        call.expect(name, data[axis:])
    kept = (*data[:axis], *(1 for _ in data[axis:]))
    return {"Y": data, "mean": kept, "inv_std_var": kept}


def _embedding(call: Call) -> Mapping[str, Shape]:
    """``ids[b, s]``; words, positions and segments are tables of rows of ``h``."""
    tokens, words = call.expect_rank("input_ids", 2), call.expect_rank("word_embedding", 2)
    if tokens is None or words is None:
        return {}
    batch, length = tokens
    if call.has("segment_ids") != call.has("segment_embedding"):
        raise UserError("one of 'segment_ids' and 'segment_embedding' is omitted against both or none")
    call.expect("segment_ids", tokens)
    call.expect("mask", tokens)
    call.expect("position_ids", tokens, (1, length))
    for name in ("position_embedding", "segment_embedding"):
        table = call.expect_rank(name, 2)
        if table is not None and table[1] != words[1]:
            raise UserError(f"{name!r} has rows of {table[1]} against {words[1]} of 'word_embedding'")
    positions = call.shape("position_embedding")
    if positions is not None and not call.has("position_ids") and positions[0] < length:
        raise UserError(f"'position_embedding' has {positions[0]} rows against {length} positions")
    for name in ("gamma", "beta"):
        call.expect(name, words[1:])
    embedded = (batch, length, words[1])
    return {"output": embedded, "mask_index": (batch,), "embedding_sum": embedded}


_TYPES = {"T": _REALS, "U": ("float32",)}
_SKIP_OUTPUTS = "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?"
NORMALISATIONS = (
    ContributedOperator(
        "SkipLayerNormalization",
        "input:T skip:T gamma:T beta:T? bias:T?",
        _SKIP_OUTPUTS,
        _skip,
        _TYPES,
        {"epsilon": 1e-12},
    ),
    ContributedOperator(
        "SkipSimplifiedLayerNormalization",
        "input:T skip:T gamma:T bias:T?",
        _SKIP_OUTPUTS,
        _skip,
        _TYPES,
        {"epsilon": 1e-12},
    ),
    # In files the domain of these two is that of ONNX itself.
    ContributedOperator(
        "LayerNormalization",
        "X:T scale:T B:T?",
        "Y:T mean:U? inv_std_var:U?",
        _layer,
        {"T": ("float32", "float64", "float16"), "U": ("float32",)},
        {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    ),
    ContributedOperator(
        "SimplifiedLayerNormalization",
        "X:T scale:T",
        "Y:T inv_std_var:U?",
        _layer,
        {"T": ("float32", "float64", "float16"), "U": ("float32",)},
        {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    ),
    ContributedOperator(
        "EmbedLayerNormalization",
        "input_ids:I segment_ids:I? word_embedding:T position_embedding:T segment_embedding:T? gamma:T beta:T mask:I? "
        "position_ids:I?",
        "output:T mask_index:I? embedding_sum:T?",
        _embedding,
        {"T": _REALS, "I": ("int32",)},
        {"epsilon": 1e-12, "mask_index_type": INTEGER},
    ),
)

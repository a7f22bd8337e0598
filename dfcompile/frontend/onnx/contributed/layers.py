"""Contributed layers: Gelu in its variants, fused products, normalisations and mixtures of experts."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import Call, ContributedOperator, expect_both, like
from dfcompile.frontend.onnx.known_shapes import Shape, require


def _matmul(call: Call) -> Mapping[str, Shape]:
    """``A[…, m, k] @ B[…, k, n]``; each may be transposed, its batch dimensions may stand between its matrix's."""
    for name in ("A", "B"):
        shape = call.shape(name)
        require(shape is None or len(shape) >= 2, f"{name!r} has {len(shape or ())} dimensions against at least 2")
    a, b = (_matrix(call, name) for name in ("A", "B"))
    require(a[-1] == b[-2], f"'A' has an inner dimension of {a[-1]} against {b[-2]} of 'B'")
    if a[:-2] and b[:-2] and a[:-2] != b[:-2]:
        raise UserError(f"'A' has batches of {list(a[:-2])} against {list(b[:-2])} of 'B'")
    return {"Y": (*(a[:-2] or b[:-2]), a[-2], b[-1])}


def _matrix(call: Call, name: str) -> Shape:
    """Return the shape of an operand after it was transposed."""
    shape = call.known(name)
    if call.integer(f"transBatch{name}"):
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if call.integer(f"trans{name}") else shape


def _skip(call: Call) -> Mapping[str, Shape]:
    """``input[b, s, h]`` or ``[s, h]``; ``skip`` of the same shape, or one for all batches."""
    data = call.known("input", 2, 3)
    call.expect("skip", data, (1, *data[1:]), data[-2:])
    for name in ("gamma", "beta", "bias"):
        call.expect(name, data[-1:])
    kept = (*data[:-1], 1)
    return {"output": data, "mean": kept, "inv_std_var": kept, "input_skip_bias_sum": data}


def _layer(call: Call) -> Mapping[str, Shape]:
    data, axis = call.known("X"), call.integer("axis", -1)
    require(-len(data) <= axis < len(data), f"axis {axis} against {len(data)} dimensions of 'X'")
    axis %= len(data)
    for name in ("scale", "B"):
        call.expect(name, data[axis:])
    kept = (*data[:axis], *(1 for _ in data[axis:]))
    return {"Y": data, "mean": kept, "inv_std_var": kept}


def _embedding(call: Call) -> Mapping[str, Shape]:
    """``ids[b, s]``; words, positions and segments are tables of rows of ``h``."""
    tokens, words = call.all_known(input_ids=(2,), word_embedding=(2,))
    batch, length = tokens
    expect_both(call, "segment_ids", "segment_embedding")
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


def _mixture(call: Call) -> Mapping[str, Shape]:
    """Experts ``fc1[e, i, h]`` and ``fc2[e, h, i]`` of tokens ``input[t, h]`` or ``[b, s, h]``, rated ``[t, e]``."""
    data, (experts, inner, width) = call.all_known(input=(2, 3), fc1_experts_weights=(3,))
    require(width == data[-1], f"'fc1_experts_weights' has rows of {width} against {data[-1]} of 'input'")
    tokens = data[0] if len(data) == 2 else data[0] * data[1]
    call.expect("router_probs", (tokens, experts))
    call.expect("fc1_experts_bias", (experts, inner))
    if call.attributes.get("activation_type") != "swiglu":  # which halves what comes between the two
        call.expect("fc2_experts_weights", (experts, width, inner))
    call.expect("fc2_experts_bias", (experts, width))
    return {"output": data}


_TWO_REALS = ("float32", "float16")
_REALS = ("float32", "float64", "float16")
_TYPES = {"T": _TWO_REALS, "U": ("float32",)}
_LAYER_TYPES = {"T": _REALS, "U": ("float32",)}
_SKIP_OUTPUTS = "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?"
_EPSILON = "epsilon=1e-12"
_OF_LAYER = "axis=-1 epsilon=1e-5 stash_type=1"
LAYERS = (
    ContributedOperator("Gelu", "X:T -> Y:T", like("X", "Y"), {"T": _REALS}),
    ContributedOperator("FastGelu", "X:T bias:T? -> Y:T", like("X", "Y", "bias"), {"T": _REALS}),
    ContributedOperator("BiasGelu", "A:T B:T -> C:T", like("A", "C", "B"), {"T": _REALS}),
    ContributedOperator("QuickGelu", "X:T -> Y:T", like("X", "Y"), {"T": _REALS}, "alpha=1.702"),
    ContributedOperator(
        "FusedMatMul",
        "A:T B:T -> Y:T",
        _matmul,
        {"T": _REALS},
        "alpha=1.0 transA=0 transB=0 transBatchA=0 transBatchB=0",
    ),
    ContributedOperator(
        "MoE",
        "input:T router_probs:T fc1_experts_weights:T fc1_experts_bias:T? fc2_experts_weights:T "
        "fc2_experts_bias:T? fc3_experts_weights:T? fc3_experts_bias:T? -> output:T",
        _mixture,
        {"T": _TWO_REALS},
        'activation_alpha=1.0 activation_beta=0.0 activation_type="relu" k=1 normalize_routing_weights=0 '
        "swiglu_fusion=0 swiglu_limit:float use_sparse_mixer=0",
    ),
    ContributedOperator(
        "SkipLayerNormalization", f"input:T skip:T gamma:T beta:T? bias:T? -> {_SKIP_OUTPUTS}", _skip, _TYPES, _EPSILON
    ),
    ContributedOperator(
        "SkipSimplifiedLayerNormalization",
        f"input:T skip:T gamma:T bias:T? -> {_SKIP_OUTPUTS}",
        _skip,
        _TYPES,
        _EPSILON,
    ),
    # In files the domain of these two is that of ONNX itself.
    ContributedOperator(
        "LayerNormalization", "X:T scale:T B:T? -> Y:T mean:U? inv_std_var:U?", _layer, _LAYER_TYPES, _OF_LAYER
    ),
    ContributedOperator(
        "SimplifiedLayerNormalization", "X:T scale:T -> Y:T inv_std_var:U?", _layer, _LAYER_TYPES, _OF_LAYER
    ),
    ContributedOperator(
        "EmbedLayerNormalization",
        "input_ids:I segment_ids:I? word_embedding:T position_embedding:T segment_embedding:T? gamma:T beta:T "
        "mask:I? position_ids:I? -> output:T mask_index:I? embedding_sum:T?",
        _embedding,
        {"T": _TWO_REALS, "I": ("int32",)},
        f"{_EPSILON} mask_index_type:int",
    ),
)

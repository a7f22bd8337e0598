"""Contributed layers: Gelu in its variants, fused products, normalisations, mixtures of experts, and attentions."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import Call, expect_both, like, operators
from dfcompile.frontend.onnx.known_shapes import Shape, require


def _matmul(call: Call) -> Mapping[str, Shape]:
    """``A[…, m, k] @ B[…, k, n]``; each may be transposed, its batch dimensions may stand between its matrix's."""
    for name in ("A", "B"):
        call.expect_least_rank(name, 2)
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
    call.expect_all(data[-1:], "gamma", "beta", "bias")
    kept = (*data[:-1], 1)
    return {"output": data, "mean": kept, "inv_std_var": kept, "input_skip_bias_sum": data}


def _layer(call: Call) -> Mapping[str, Shape]:
    data, axis = call.known("X"), call.integer("axis", -1)
    require(-len(data) <= axis < len(data), f"axis {axis} against {len(data)} dimensions of 'X'")
    axis %= len(data)
    call.expect_all(data[axis:], "scale", "B")
    kept = (*data[:axis], *(1 for _ in data[axis:]))
    return {"Y": data, "mean": kept, "inv_std_var": kept}


def _embedding(call: Call) -> Mapping[str, Shape]:
    """``ids[b, s]``; words, positions and segments are tables of rows of ``h``."""
    tokens, words = call.all_known(input_ids=(2,), word_embedding=(2,))
    batch, length = tokens
    expect_both(call, "segment_ids", "segment_embedding")
    call.expect_all(tokens, "segment_ids", "mask")
    call.expect("position_ids", tokens, (1, length))
    for name in ("position_embedding", "segment_embedding"):
        table = call.expect_rank(name, 2)
        if table is not None and table[1] != words[1]:
            raise UserError(f"{name!r} has rows of {table[1]} against {words[1]} of 'word_embedding'")
    positions = call.shape("position_embedding")
    if positions is not None and not call.has("position_ids") and positions[0] < length:
        raise UserError(f"'position_embedding' has {positions[0]} rows against {length} positions")
    call.expect_all(words[1:], "gamma", "beta")
    embedded = (batch, length, words[1])
    return {"output": embedded, "mask_index": (batch,), "embedding_sum": embedded}


def _mixture(call: Call) -> Mapping[str, Shape]:
    """Experts ``fc1[e, i, h]`` and ``fc2[e, h, i]`` of tokens ``input[t, h]`` or ``[b, s, h]``, rated ``[t, e]``."""
    data, (experts, inner, width) = call.all_known(input=(2, 3), fc1_experts_weights=(3,))
    require(width == data[-1], f"'fc1_experts_weights' has rows of {width} against {data[-1]} of 'input'")
    call.expect("router_probs", (data[0] if len(data) == 2 else data[0] * data[1], experts))
    call.expect("fc1_experts_bias", (experts, inner))
    if call.attributes.get("activation_type") != "swiglu":  # which halves what comes between the two
        call.expect("fc2_experts_weights", (experts, width, inner))
    call.expect("fc2_experts_bias", (experts, width))
    return {"output": data}


def _attention(call: Call) -> Mapping[str, Shape]:
    """``input[b, s, i] @ weights[i, q + k + v] + bias``, then attention; ``past[2, b, heads, p, h]``."""
    (batch, length, inner), weights = call.all_known(input=(3,), weights=(2,))
    widths = call.integers("qkv_hidden_sizes") or (weights[1] // 3,) * 3
    if len(widths) != 3 or sum(widths) != weights[1] or inner != weights[0] or widths[0] != widths[1]:
        wanted = f"{inner} rows, and columns of queries, keys and values {list(widths)}"
        raise UserError(f"'weights' is {weights[0]}×{weights[1]} against {wanted}")
    call.expect("bias", weights[1:])
    key, value = (call.per_head("weights", width, "num_heads") for width in widths[1:])
    before = 0
    past = call.expect_rank("past", 5)
    if past is not None:
        require(key == value, f"'past' with keys of {key} elements against {value} of the values")
        before = past[3]
        call.expect("past", (2, batch, call.integer("num_heads"), before, key))
    total = before + length
    _check_scores(call, "mask_index", batch, length, total)
    found: dict[str, Shape] = {"output": (batch, length, widths[2])}
    if key == value:
        found["present"] = (2, batch, call.integer("num_heads"), total, key)
    return found


def _multi_head(call: Call) -> Mapping[str, Shape]:
    """``query[b, s, q]``, ``key[b, l, q]`` and ``value[b, l, v]``, the last two perhaps as heads ``[b, n, l, h]``."""
    query, key = call.all_known(query=(3, 5), key=(3, 4, 5))
    if 5 in (len(query), len(key)):
        return {}
    value = call.known("value", len(key))
    batch, length, width = query
    heads, size = call.integer("num_heads"), call.per_head("query", width, "num_heads")
    if len(key) == 3:
        keys = key[1]
        call.expect("key", (batch, keys, width))
        value_size = call.per_head("value", value[-1], "num_heads")
        call.expect("value", (batch, keys, heads * value_size))
    else:
        keys, value_size = key[2], value[-1]
        call.expect_all((batch, heads, keys, size), "key", "value")
    call.expect("bias", (2 * width + heads * value_size,))
    expect_both(call, "past_key", "past_value")
    past = call.expect_rank("past_key", 4)
    before = 0 if past is None else past[2]
    call.expect("past_key", (batch, heads, before, size))
    call.expect("past_value", (batch, heads, before, value_size))
    total = before + keys
    _check_scores(call, "key_padding_mask", batch, length, total)
    return {
        "output": (batch, length, heads * value_size),
        "present_key": (batch, heads, total, size),
        "present_value": (batch, heads, total, value_size),
        "qk": (batch, heads, length, total),
    }


def _group_query(call: Call) -> Mapping[str, Shape]:
    """``query[b, s, n * h]`` with keys and values ``[b, s, groups * h]``, or all three side by side in ``query``."""
    call.expect_rank("query", 3)
    heads, groups = call.integer("num_heads"), call.integer("kv_num_heads")
    is_whole = groups >= 1 and not heads % groups
    require(is_whole, f"attribute 'num_heads' is {heads} against a multiple of 'kv_num_heads', {groups}")
    batch, length, width = call.known("query")
    expect_both(call, "key", "value")
    expect_both(call, "past_key", "past_value")
    together = heads if call.has("key") else heads + 2 * groups
    require(not width % together, f"'query' has {width} columns against a multiple of {together} heads")
    size = width // together
    call.expect_all((batch, length, groups * size), "key", "value")
    call.expect("seqlens_k", (batch,), (batch, 1))
    past = call.expect_rank("past_key", 4)
    before = 0 if past is None else past[2]
    call.expect_all((batch, groups, before, size), "past_key", "past_value")
    call.expect("position_ids", (batch, length))
    _check_tables(call)
    found: dict[str, Shape] = {"output": (batch, length, heads * size)}
    total = call.values.get("total_sequence_length")
    if total is not None and len(total) == 1:
        # How many tokens there are: new ones behind those of the cache, or all of them within it
        tokens = total[0]
        if tokens < length or (tokens > before and tokens != before + length):
            within = f", or {length} to {before} within the cache" if before >= length else ""
            wanted = f"{before + length} ({before} in 'past_key' and {length} new){within}"
            raise UserError(f"'total_sequence_length' is {tokens} against {wanted}")
        tables = call.shape("cos_cache")
        positions = max(before, tokens) if tables is None else tables[0]
        require(positions >= tokens, f"'cos_cache' has {positions} positions against at least {tokens}")
        least, most = 0 if length == tokens else length - 1, min(max(before, tokens), positions) - 1
        for last in call.values.get("seqlens_k", ()):
            require(least <= last <= most, f"'seqlens_k' is {last} against {least} to {most} (tokens less one)")
        found |= dict.fromkeys(("present_key", "present_value"), (batch, groups, max(before, total[0]), size))
    return found


def _check_scores(call: Call, mask: str, batch: int, length: int, total: int) -> None:
    """Check what is added to scores, and which of them a mask leaves out."""
    heads = call.integer("num_heads")
    call.expect("attention_bias", *((b, n, length, total) for b in (batch, 1) for n in (heads, 1)))
    shapes = [(batch,), (2 * batch,), (3 * batch + 2,), (batch, total), (batch, length, total)]
    call.expect(mask, *shapes, (batch, 1, total, total))


def _rotary(call: Call) -> Mapping[str, Shape]:
    """``input[b, s, n * h]`` or ``[b, n, s, h]``; a table of cosines and sines by position."""
    data = call.known("input", 3, 4)
    call.expect("position_ids", (1,), (data[0], data[1] if len(data) == 3 else data[2]))
    _check_tables(call)
    return {"output": data}


def _check_tables(call: Call) -> None:
    """Check tables of cosines and sines, ``[positions, angles]``."""
    tables = call.expect_rank("cos_cache", 2)
    if tables is not None:
        require(tables[1], "'cos_cache' has 0 angles against at least one")
        call.expect("sin_cache", tables)


_TYPES = {"T": ("float32", "float16"), "U": ("float32",), "I": ("int32",), "P": ("int64",)}
LAYERS = operators(
    """
    Gelu X:T -> Y:T || T=float32,float64,float16
    FastGelu X:T bias:T? -> Y:T || T=float32,float64,float16
    BiasGelu A:T B:T -> C:T || T=float32,float64,float16
    QuickGelu X:T -> Y:T | alpha=1.702 | T=float32,float64,float16
    FusedMatMul A:T B:T -> Y:T | alpha=1.0 transA=0 transB=0 transBatchA=0 transBatchB=0 | T=float32,float64,float16
    MoE input:T router_probs:T fc1_experts_weights:T fc1_experts_bias:T? fc2_experts_weights:T fc2_experts_bias:T?
        fc3_experts_weights:T? fc3_experts_bias:T? -> output:T
        | activation_alpha=1.0 activation_beta=0.0 activation_type="relu" k=1 normalize_routing_weights=0
          swiglu_fusion=0 swiglu_limit:float use_sparse_mixer=0
    SkipLayerNormalization input:T skip:T gamma:T beta:T? bias:T?
        -> output:T mean:U? inv_std_var:U? input_skip_bias_sum:T? | epsilon=1e-12
    SkipSimplifiedLayerNormalization input:T skip:T gamma:T bias:T?
        -> output:T mean:U? inv_std_var:U? input_skip_bias_sum:T? | epsilon=1e-12
    LayerNormalization X:T scale:T B:T? -> Y:T mean:U? inv_std_var:U?
        | axis=-1 epsilon=1e-5 stash_type=1 | T=float32,float64,float16
    SimplifiedLayerNormalization X:T scale:T -> Y:T inv_std_var:U?
        | axis=-1 epsilon=1e-5 stash_type=1 | T=float32,float64,float16
    EmbedLayerNormalization input_ids:I segment_ids:I? word_embedding:T position_embedding:T segment_embedding:T?
        gamma:T beta:T mask:I? position_ids:I? -> output:T mask_index:I? embedding_sum:T?
        | epsilon=1e-12 mask_index_type:int
    Attention input:T weights:T bias:T? mask_index:I? past:T? attention_bias:T? past_sequence_length:I?
        -> output:T present:T?
        | num_heads:int! unidirectional=0 scale:float mask_filter_value:float qkv_hidden_sizes:ints do_rotary:int
          rotary_embedding_dim:int past_present_share_buffer:int
    MultiHeadAttention query:T key:T? value:T? bias:T? key_padding_mask:I? attention_bias:T? past_key:T? past_value:T?
        past_sequence_length:I? cache_indirection:I? -> output:T present_key:T? present_value:T? qk:T?
        | num_heads:int! unidirectional=0 scale:float mask_filter_value:float
    GroupQueryAttention query:T key:T? value:T? past_key:T? past_value:T? seqlens_k:I total_sequence_length:I
        cos_cache:T? sin_cache:T? position_ids:P? attention_bias:T? head_sink:T? k_scale:U? v_scale:U?
        q_norm_weight:T? k_norm_weight:T? -> output:T present_key:T? present_value:T? output_qk:T?
        | num_heads:int! kv_num_heads:int! causal=1 k_quant_type="NONE" kv_cache_bit_width:int qk_norm_epsilon=1e-6
          sliding_window_cache=0 v_quant_type="NONE" do_rotary:int local_window_size=-1 qk_output=0
          rotary_interleaved:int scale:float smooth_softmax=-1 softcap:float
    RotaryEmbedding input:T position_ids:P cos_cache:T sin_cache:T -> output:T
        | interleaved=0 num_heads=0 rotary_embedding_dim=0 is_packed_batching=0 scale=1.0
    """,
    {
        **dict.fromkeys(("Gelu", "QuickGelu"), like("X", "Y")),
        "FastGelu": like("X", "Y", "bias"),
        "BiasGelu": like("A", "C", "B"),
        "FusedMatMul": _matmul,
        "MoE": _mixture,
        **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip),
        # In files the domain of these two is that of ONNX itself.
        **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization"), _layer),
        "EmbedLayerNormalization": _embedding,
        "Attention": _attention,
        "MultiHeadAttention": _multi_head,
        "GroupQueryAttention": _group_query,
        "RotaryEmbedding": _rotary,
    },
    _TYPES,
)

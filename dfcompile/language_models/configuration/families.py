"""How each family of models is made of its configuration's fields, which are filled in as its class does [hf]."""

from collections.abc import Callable, Mapping, Sequence

from dfcompile.language_models.configuration.composed import (
    FULL,
    composed,
    head_size,
    latent_attention,
    layer_count,
    model_of_layers,
    reaches_of,
    sparse_layers,
    to_encoder,
    window_of,
)
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.configuration.gemma import gemma3n, gemma4
from dfcompile.language_models.configuration.hybrids import HYBRIDS, RECURRENT
from dfcompile.language_models.configuration.rows import PLAIN, ROWS
from dfcompile.language_models.mixer import Indexer, Product
from dfcompile.language_models.model import Attention, DenseMlp, Experts, Layer, Mask, Model, Reach
from dfcompile.records import replace

IMAGE_TOKENS = 4 * 1601  # of an image of four tiles, as Llama 3.2 Vision was published
CROSSED = frozenset((3, 8, 13, 18, 23, 28, 33, 38))  # layers, counted from 0
SPECIAL = 8  # rows of the embedding beyond the vocabulary
T5_TOKENS = 512  # of the encoder, that T5 was trained with: its positions are relative, so that no field says any


def t5(fields: Fields) -> Model:
    """Return the decoder of T5: no biases, heads of any size, and a table of biases by distance.

    UMT5 has such a table in every layer, the others one for all.

    Raises:
        UserError: a field is missing or wrong.
    """
    hidden, layers = fields.count("d_model"), layer_count(fields, "num_decoder_layers", "num_layers")
    heads, dim = fields.count("num_heads"), fields.count("d_kv")
    activation = fields.stated("feed_forward_proj")
    if not isinstance(activation, str):
        raise fields.wrong("feed_forward_proj", f"{activation!r} against the name of an activation function")
    attention, distances = Attention(heads, heads, dim, dim), fields.count("relative_attention_num_buckets") * heads
    in_layers = fields.family == "umt5"
    layer = Layer(
        attention,
        DenseMlp(fields.count("d_ff"), gated=activation.startswith("gated-")),
        norms=3,
        extra_parameters=distances * in_layers,
        cross=to_encoder(attention, T5_TOKENS),
    )
    fields.taken.append(f"encoder: {T5_TOKENS} tokens taken, for no field says how many (--encoder-tokens)")
    model = model_of_layers(fields, hidden, (layer,) * layers)
    return replace(model, vectors=distances * (not in_layers), most_context=0)


def trocr(fields: Fields) -> Model:
    """Return the decoder of TrOCR, whose positions and norm of the embedding are fields.

    Raises:
        UserError: a field is missing or wrong.
    """
    row = replace(ROWS["bart"], embedding_norm=fields.flag("layernorm_embedding"), may_cross=True, encoder=())
    if not fields.flag("use_learned_position_embeddings"):
        row = replace(row, positions=(), further_positions=0)
    if "encoder" not in fields.values:
        raise fields.wrong("model_type", "'trocr' without the encoder of a 'vision-encoder-decoder'")
    return composed(replace(row, norms=2))(fields)


def mllama(fields: Fields) -> Model:
    """Return Llama 3.2 Vision: some layers attend to tokens of images instead of those of the text.

    Raises:
        UserError: a field is missing or wrong.
    """
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    heads, kv_heads = fields.count("num_attention_heads"), fields.count("num_key_value_heads")
    fields.dividing("num_key_value_heads", kv_heads, heads)
    dim, mlp = head_size(fields, hidden, heads), DenseMlp(fields.count("intermediate_size"))
    attention, crossed = Attention(heads, kv_heads, dim, dim), fields.layers_in("cross_attention_layers")
    if crossed is None:
        crossed = CROSSED
        fields.taken.append(f"cross_attention_layers = {sorted(CROSSED)}: left out, default of its class")
    to_images = replace(to_encoder(attention, IMAGE_TOKENS), norm_parameters=2 * dim)
    own = Layer(attention, mlp)
    other = Layer(to_images, mlp, extra_parameters=2)  # gates of attention and MLP
    fields.taken.append(f"encoder: {IMAGE_TOKENS} tokens taken, of an image of four tiles (--encoder-tokens)")
    model = model_of_layers(fields, hidden, tuple(other if at in crossed else own for at in range(layers)))
    return replace(model, vectors=SPECIAL * hidden)


Reader = Callable[[Fields], Model]
_KV_HEADS, _CHOSEN = "num_key_value_heads", "num_experts_per_tok"


def _sizes(fields: Fields, *, derived: bool = False) -> tuple[int, int, int, int, int]:
    """Return hidden size, layers, heads, ``head_dim``, and heads of keys and values, which must divide the others.

    Where the class derives ``head_dim``, heads must divide the hidden size.
    """
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    heads, size = fields.count("num_attention_heads"), None
    if derived and fields.values.get("head_dim") is None:
        if hidden % heads:
            found = f"{heads} heads that do not divide hidden_size {hidden} (give head_dim)"
            raise fields.wrong("num_attention_heads", found)
        size = hidden // heads
    dim = fields.count("head_dim", derived=size)
    return hidden, layers, heads, dim, fields.dividing(_KV_HEADS, fields.count(_KV_HEADS), heads)


def _layers(
    attention: Attention, reaches: Sequence[Reach], mlps: Sequence[DenseMlp | Experts], norms: int = 2
) -> tuple[Layer, ...]:
    """Return layers whose attention differs in its reach alone."""
    return tuple(Layer(replace(attention, reach=reach), mlp, norms) for reach, mlp in zip(reaches, mlps, strict=True))


def _experts(fields: Fields, width: int, *, bias: bool = False, shared_width: int = 0) -> Experts:
    counts, chosen = ("num_local_experts", "num_experts", "n_routed_experts"), (_CHOSEN, "experts_per_token")
    return Experts(*fields.experts(counts, chosen), width, shared_width, router_bias=bias, bias=bias)


def _qwen(fields: Fields) -> Model:
    is_second, is_sparse = fields.family.startswith("qwen2"), "_moe" in fields.family
    hidden, layers, heads, dim, kv_heads = _sizes(fields, derived=fields.family != "qwen3")
    windowed = fields.flag("use_sliding_window") if fields.stated("use_sliding_window") is not None else is_sparse
    reach = window_of(fields.optional("sliding_window") if windowed else 0)
    if is_sparse and not is_second:
        reaches: Sequence[Reach] = (reach,) * layers
    else:
        first = fields.count("max_window_layers", least=0) if windowed else layers
        reaches = reaches_of(fields, layers, reach, lambda layer: layer >= first)
    if is_second:
        bias = not is_sparse or fields.flag("qkv_bias")
        attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias)
    else:
        bias = fields.flag("attention_bias")
        attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=2 * dim)
    mlps: list[DenseMlp | Experts] = [DenseMlp(fields.count("intermediate_size"))] * layers
    if is_sparse:
        shared = fields.optional("shared_expert_intermediate_size", least=0) if is_second else 0
        experts = _experts(fields, fields.count("moe_intermediate_size"), shared_width=shared)
        experts = replace(experts, shared_gate=shared > 0)
        step, only = fields.count("decoder_sparse_step"), fields.layers_in("mlp_only_layers") or frozenset()
        mlps = [mlp if i in only or (i + 1) % step else experts for i, mlp in enumerate(mlps)]
    return model_of_layers(fields, hidden, _layers(attention, reaches, mlps))


_CHOOSING = ("deepseek_v32", "glm_moe_dsa")  # whose queries attend to some tokens that an indexer chooses


def _deepseek(fields: Fields) -> Model:
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    is_derived = fields.family == "minicpm3" and fields.stated("v_head_dim") is None
    attention = latent_attention(fields, hidden // fields.count("num_attention_heads") if is_derived else None)
    if fields.family in _CHOOSING:
        indexer = Indexer(fields.count("index_n_heads"), fields.count("index_head_dim"))
        attention = replace(attention, chosen=fields.count("index_topk"), indexer=indexer)
        fields.count("q_lora_rank")  # which queries of the indexer are made of
    dense = DenseMlp(fields.count("intermediate_size"))
    if fields.family in ("minicpm3", "youtu"):
        return model_of_layers(fields, hidden, (Layer(attention, dense),) * layers)
    width = fields.count("moe_intermediate_size")
    experts = _experts(fields, width, shared_width=fields.optional("n_shared_experts", least=0) * width)
    norms = 3 if fields.family == "axk1" else 2  # the third one follows experts
    first, frequency = fields.count("first_k_dense_replace", least=0), fields.count("moe_layer_freq")
    if fields.family == "glm4_moe_lite":
        first = 1  # whatever the file says
    if fields.optional("num_nextn_predict_layers", least=0):
        fields.taken.append("num_nextn_predict_layers: layers that predict further tokens are not modelled")
    if fields.stated("mlp_bias"):
        raise fields.wrong("mlp_bias", "true, which is not modelled, against false")
    sparse = sparse_layers(fields, layers, lambda layer: layer >= first and layer % frequency == 0)
    shared = replace(attention, indexer=None)
    attentions = [attention if one else shared for one in _indexed(fields, layers)]
    both = zip(attentions, sparse, strict=True)
    made = tuple(Layer(one, experts, norms) if many else Layer(one, dense) for one, many in both)
    return model_of_layers(fields, hidden, made)


def _indexed(fields: Fields, layers: int) -> Sequence[bool]:
    """Return which layers choose tokens themselves; the others attend to those of the layer before."""
    if fields.family != "glm_moe_dsa":
        return (True,) * layers
    pattern = fields.stated("index_topk_pattern")
    if pattern is not None:
        raise fields.wrong("index_topk_pattern", f"{str(pattern)[:40]!r}, which is not modelled (give indexer_types)")
    words = fields.per_layer("indexer_types", layers)
    if words is None:
        every, offset = fields.count("index_topk_freq"), fields.count("index_skip_topk_offset", least=0)
        return [max(layer - offset + 1, 0) % every == 0 for layer in range(layers)]
    if words[0] != "full" or not set(words) <= {"full", "shared"}:
        raise fields.wrong("indexer_types", f"{words[0]!r} first of {sorted(set(words))} against full, shared")
    return [word == "full" for word in words]


def _gemma(fields: Fields) -> Model:
    hidden, layers, heads, dim, kv_heads = _sizes(fields)
    window = window_of(fields.optional("sliding_window"))
    is_second = fields.family == "gemma2"
    period = 2 if is_second else fields.count("sliding_window_pattern", "_sliding_window_pattern")
    reaches = reaches_of(fields, layers, window, lambda layer: (layer + 1) % period != 0)
    bias, norms = fields.flag("attention_bias"), 0 if is_second else 2 * dim
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=norms)
    mlp = DenseMlp(fields.count("intermediate_size"))
    return model_of_layers(fields, hidden, _layers(attention, reaches, (mlp,) * layers, norms=4))


def _t5gemma(fields: Fields) -> Model:
    """Read T5Gemma: Gemma 2 that attends to an encoder, whose tokens may be of other sizes, between two more norms."""
    ties = {"tie_word_embeddings": fields.stated("tie_word_embeddings")}
    encoder = replace(fields, values=fields.nested("encoder"))
    model = _gemma(replace(fields, values={**ties, **fields.nested("decoder")}, family="gemma2"))
    tokens, source = encoder.count("max_position_embeddings"), encoder.count("hidden_size")
    layers = []
    for layer in model.layers:
        assert isinstance(layer.attention, Attention)
        cross = replace(to_encoder(layer.attention, tokens), source=source)
        layers.append(replace(layer, norms=6, cross=cross))
    return replace(model, model_type=fields.family, layers=tuple(layers), most_encoded=tokens)


def _llama4(fields: Fields) -> Model:
    hidden, layers, heads, dim, kv_heads = _sizes(fields)
    extent = fields.optional("attention_chunk_size")
    chunk = Reach(Mask.CHUNK, extent) if extent else FULL
    interval = fields.count("no_rope_layer_interval")
    ropes = fields.per_layer("no_rope_layers", layers) if fields.listed("no_rope_layers") else None
    reaches = reaches_of(
        fields, layers, chunk, lambda layer: (layer + 1) % interval != 0 if ropes is None else ropes[layer] != "0"
    )
    width, bias = fields.count("intermediate_size"), fields.flag("attention_bias")
    experts, dense = _experts(fields, width, shared_width=width), DenseMlp(fields.count("intermediate_size_mlp"))
    step, listed = fields.count("interleave_moe_layer_step"), fields.layers_in("moe_layers")
    sparse = listed if listed is not None else frozenset(range(step - 1, layers, step))
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias)
    mlps = [experts if i in sparse else dense for i in range(layers)]
    return model_of_layers(fields, hidden, _layers(attention, reaches, mlps))


def _gpt_oss(fields: Fields) -> Model:
    hidden, layers, heads, dim, kv_heads = _sizes(fields)
    window = window_of(fields.optional("sliding_window"))
    reaches = reaches_of(fields, layers, window, lambda layer: (layer + 1) % 2 != 0)
    bias = fields.flag("attention_bias")
    experts = _experts(fields, fields.count("intermediate_size"), bias=True)
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, sinks=heads)
    return model_of_layers(fields, hidden, _layers(attention, reaches, (experts,) * layers))


def _falcon(fields: Fields) -> Model:
    """Read Falcon: the decoder of its larger models has grouped heads, and one or two norms before both branches."""
    row = ROWS["falcon"]
    if fields.flag("new_decoder_architecture"):
        before = fields.optional("num_ln_in_parallel_attn") or 2
        norms = 1 if before != 2 and fields.flag("parallel_attn") else 2
        row = replace(row, single_kv="", kv_heads=("num_kv_heads",), side_by_side="", norms=norms)
    return composed(row)(fields)


def _opt(fields: Fields) -> Model:
    """Read OPT: where norms follow attention and MLP, none precedes the head; rows of the embedding may be shorter."""
    model = composed(ROWS["opt"])(fields)
    if not fields.flag("do_layer_norm_before"):
        model = replace(model, norm_weights=False, norm_biases=False)
    row, hidden = fields.optional("word_embed_proj_dim") or model.hidden, model.hidden
    if row == hidden:
        return replace(model, notes=tuple(dict.fromkeys(fields.taken)))
    return replace(
        model,
        embedded=row,
        opening=(Product("project_in", row, hidden),),
        closing=(Product("project_out", hidden, row),),
        notes=tuple(dict.fromkeys(fields.taken)),
    )


def _gpt_neo(fields: Fields) -> Model:
    named = replace(PLAIN, layers=("num_layers",), heads=("num_heads",), positions=("max_position_embeddings",))
    model = composed(replace(named, widens=True, qkv_bias=False))(fields)
    window, kinds = window_of(fields.count("window_size")), ("global", "local")
    if fields.listed("attention_types") is None:
        fields.taken.append("attention_types: left out, global and local by turns as its class has them")
    words: list[object] = []
    for entry in fields.listed("attention_types") or ([list(kinds), -(-len(model.layers) // 2)],):
        match entry:
            case [[*some], int(times)] if 0 < times <= len(model.layers):
                words += some * times
            case _:
                raise fields.wrong("attention_types", f"{str(entry)[:40]!r} against [[global, local], times]")
    if len(words) < len(model.layers) or not all(word in kinds for word in words):
        raise fields.wrong("attention_types", f"{len(words)} of {len(model.layers)} layers, or another than {kinds}")
    layers = (
        replace(layer, attention=replace(attention, reach=FULL if word == "global" else window))
        for layer, attention, word in zip(model.layers, model.attentions, words, strict=False)
    )
    return replace(model, layers=tuple(layers), notes=tuple(dict.fromkeys(fields.taken)))


def _dbrx(fields: Fields) -> Model:
    hidden, layers, heads = fields.count("d_model"), layer_count(fields, "n_layers"), fields.count("n_heads")
    nested = replace(fields, values={**fields.nested("attn_config"), **fields.nested("ffn_config")})
    kv_heads = nested.count("kv_n_heads")
    if hidden % heads or heads % kv_heads:
        raise fields.wrong("n_heads", f"{heads} heads against a divisor of {hidden} and a multiple of {kv_heads}")
    experts = nested.experts(("moe_num_experts",), ("moe_top_k",))
    dim = hidden // heads
    layer = Layer(Attention(heads, kv_heads, dim, dim), Experts(*experts, nested.count("ffn_hidden_size")))
    return model_of_layers(fields, hidden, (layer,) * layers)


def _mimo(fields: Fields) -> Model:
    hidden, layers, heads, dim, kv_heads = _sizes(fields)
    window = window_of(fields.count("sliding_window"))
    if (before := fields.optional("sliding_window_size")) > 0:
        window = window_of(before + 1)  # which says how many are seen before the token itself
    reaches = reaches_of(fields, layers, window, lambda layer: layer > 0 and (layer + 1) % 6 != 0)
    far = Attention(heads, kv_heads, dim, fields.count("v_head_dim"), qkv_bias=fields.flag("attention_bias"))
    if heads % (2 * kv_heads):
        found = f"{2 * kv_heads} heads in a window that do not divide the {heads} of num_attention_heads"
        raise fields.wrong(_KV_HEADS, found)
    near = replace(far, kv_heads=2 * kv_heads, sinks=heads)
    experts = _experts(fields, fields.count("moe_intermediate_size"))
    dense = DenseMlp(fields.count("intermediate_size"))
    made = (
        Layer(replace(far if reach is FULL else near, reach=reach), experts if sparse else dense)
        for reach, sparse in zip(reaches, sparse_layers(fields, layers, lambda layer: layer > 0), strict=True)
    )
    return model_of_layers(fields, hidden, tuple(made))


FAMILIES: Mapping[str, Reader] = {
    **{name: composed(row) for name, row in {**ROWS, **HYBRIDS}.items()},
    **RECURRENT,
    "opt": _opt,
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", *_CHOOSING), _deepseek),
    **dict.fromkeys(("axk1", "minicpm3", "mistral4", "sarvam_mla", "youtu"), _deepseek),
    **dict.fromkeys(("gemma2", "gemma3_text"), _gemma),
    "gemma3n_text": gemma3n,
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), gemma4),
    "dbrx": _dbrx,
    "falcon": _falcon,
    "gpt_neo": _gpt_neo,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    "mimo_v2_flash": _mimo,
    "mllama_text_model": mllama,
    "t5gemma": _t5gemma,
    "trocr": trocr,
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5"), t5),
    **dict.fromkeys(("qwen2", "qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_moe", "qwen2_vl_text"), _qwen),
    **dict.fromkeys(("qwen3", "qwen3_moe", "qwen3_omni_moe_text", "qwen3_vl_moe_text"), _qwen),
}

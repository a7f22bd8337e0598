"""Families with recurrent mixers: in place of attention in all layers or some, or beside it [hf]."""

from collections.abc import Callable, Mapping, Sequence

from dfcompile.language_models.configuration.composed import (
    MOST_LAYERS,
    grouped_attention,
    latent_attention,
    layer_count,
    model_of_layers,
    sparse_layers,
    window_of,
)
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.configuration.mixers import (
    CHUNK,
    MambaNames,
    gated_delta,
    lightning,
    mamba,
    rg_lru,
    short_convolution,
)
from dfcompile.language_models.configuration.rows import BIAS, BIASED, LLAMA, Family, Mixture
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.language_models.model import DenseMlp, Experts, Layer, Model
from dfcompile.records import replace

_LARGEST_FACTOR = 1000
_WINDOWS = ("sliding_window", "attention_window_size")
_UNTIED = False  # of classes that have no head that is the embedding, whatever the file says
_EXPERT_WIDTH = "moe_intermediate_size"
_ATTENTION, _WINDOW, _MIXER, _BOTH = "full_attention", "sliding_attention", "linear_attention", "hybrid"
_WORDS: Mapping[str, str] = {  # of layers, in files
    "full_attention": _ATTENTION, "attention": _ATTENTION, "linear_attention": _MIXER, "mamba": _MIXER,
    "conv": _MIXER, "sliding_attention": _WINDOW,
}  # fmt: skip
Mixing = Callable[[Fields, tuple[Layer, ...]], tuple[Layer, ...]]


def _mixing(mixer: Callable[[Fields, int], Mixer], kinds: Callable[[Fields, int], Sequence[str]]) -> Mixing:
    """Return what puts a mixer in the place of attention, or beside it, where a kind of layer says so.

    Attention is that of the layer, or has the window of the file where the kind says so.

    Raises:
        UserError: when it does: there is no such window.
    """

    def mixed(fields: Fields, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        one, window = mixer(fields, fields.count("hidden_size")), window_of(fields.optional(*_WINDOWS))

        def of_kind(layer: Layer, kind: str) -> Layer:
            if kind == _WINDOW and layer.attention is not None:
                if not window.extent:
                    raise fields.wrong("layer_types", f"{kind!r} without an extent for it")
                return replace(layer, attention=replace(layer.attention, reach=window))
            mixing = None if kind in (_ATTENTION, _WINDOW) else one
            return replace(layer, attention=None if kind == _MIXER else layer.attention, mixer=mixing)

        return tuple(map(of_kind, layers, kinds(fields, len(layers))))

    return mixed


def _kinds(fields: Fields, layers: int, pattern: Callable[[int], bool], name: str = "layer_types") -> Sequence[str]:
    """Return what each layer has: `layer_types` if the file has them, else attention where the pattern is true.

    Raises:
        UserError: a type of layers that is unknown.
    """
    named = fields.per_layer(name, layers)
    if named is None:
        return [_ATTENTION if pattern(layer) else _MIXER for layer in range(layers)]
    for word in named:
        if word not in _WORDS:
            raise fields.wrong(name, f"{word!r} against {', '.join(_WORDS)}")
    return [_WORDS[word] for word in named]


def _every_fourth(fields: Fields, layers: int) -> Sequence[str]:
    period = fields.count("full_attention_interval")
    return _kinds(fields, layers, lambda layer: (layer + 1) % period == 0)


def _one_at_least(fields: Fields, layers: int) -> Sequence[str]:
    return _kinds(fields, layers, lambda layer: layer % 4 == 3 or (layers < 4 and layer == layers - 1))


def _patterned(*pattern: str, first: str = "") -> Callable[[Fields, int], Sequence[str]]:
    """Return what reads the kinds of layers where they repeat, but for the first one."""

    def kinds(fields: Fields, layers: int) -> Sequence[str]:
        if fields.listed("layer_types") is not None:
            return _kinds(fields, layers, lambda _: False)
        return [pattern[layer % len(pattern)] if layer or not first else first for layer in range(layers)]

    return kinds


def _blocks(fields: Fields, layers: int) -> Sequence[str]:
    """Return RecurrentGemma's kinds, which a file lists once."""
    words = {"recurrent": _MIXER, "attention": _WINDOW}
    blocks = [str(one) for one in fields.listed("block_types") or ("recurrent", "recurrent", "attention")]
    for word in blocks:
        if word not in words:
            raise fields.wrong("block_types", f"{word!r} against {', '.join(words)}")
    return [words[blocks[layer % len(blocks)]] for layer in range(layers)]


def _listed(name: str, *, otherwise: bool) -> Callable[[Fields, int], Sequence[str]]:
    """Return what reads the kinds of layers where a list has those with attention."""

    def kinds(fields: Fields, layers: int) -> Sequence[str]:
        listed = fields.layers_in(name)
        return _kinds(fields, layers, lambda layer: otherwise if listed is None else layer in listed)

    return kinds


def _periodic(fields: Fields, layers: int) -> Sequence[str]:
    period, offset = fields.count("attn_layer_period"), fields.count("attn_layer_offset", least=0)
    return [_ATTENTION if layer % period == offset else _MIXER for layer in range(layers)]


def _short_width(fields: Fields, width: int) -> int:
    """Return the width of LFM2's MLP, two thirds of what the file says, rounded up to a multiple."""
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    multiple = fields.count("block_multiple_of")
    factor = fields.stated("block_ffn_dim_multiplier")
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not 0 < factor <= _LARGEST_FACTOR:
        raise fields.wrong("block_ffn_dim_multiplier", f"{factor!r} against a number of 0 to {_LARGEST_FACTOR}")
    return -(-int(factor * (2 * width // 3)) // multiple) * multiple


def _mamba_of(names: MambaNames) -> Callable[[Fields, int], Mixer]:
    return lambda fields, hidden: mamba(names, fields, hidden)


_DELTA = replace(BIASED, gate=True, gate_bias=BIAS, qk_norm=True, mixing=_mixing(gated_delta, _every_fourth))
_MIXTURE = Mixture(shared_width="shared_expert_intermediate_size", shared_gate=True)
_SHORT = Family(
    qk_norm=True,
    width=("block_ff_dim", "intermediate_size"),
    tied=("tie_embedding", "tie_word_embeddings"),
    mixing=_mixing(short_convolution, _listed("full_attn_idxs", otherwise=True)),
)

HYBRIDS: Mapping[str, Family] = {
    "bamba": replace(
        LLAMA, mixing=_mixing(_mamba_of(MambaNames()), _listed("attn_layer_indices", otherwise=False))
    ),
    "falcon_h1": replace(
        LLAMA,
        mixing=_mixing(
            _mamba_of(MambaNames(inner="mamba_d_ssm", closing_bias="projectors_bias", norm="mamba_rms_norm")),
            lambda _, layers: [_BOTH] * layers,
        ),
    ),
    "granitemoehybrid": replace(
        BIASED,
        experts=Mixture("intermediate_size", shared_width="shared_intermediate_size", least=1),
        mixing=_mixing(_mamba_of(MambaNames()), lambda fields, layers: _kinds(fields, layers, lambda _: False)),
    ),
    "jamba": Family(
        experts=Mixture("intermediate_size", least=2, every="expert_layer_period", offset="expert_layer_offset"),
        mixing=_mixing(_mamba_of(MambaNames(rank="mamba_dt_rank", step_norms=True)), _periodic),
    ),
    "lara_mini": replace(
        BIASED, qk_norm=True, experts=Mixture(shared_width="shared_expert_intermediate_size"),
        mixing=_mixing(gated_delta, _patterned(_MIXER, _WINDOW, _MIXER, _ATTENTION, _WINDOW)),
    ),
    "lfm2": replace(_SHORT, adjusted_width=_short_width),
    "lfm3": replace(
        BIASED, qk_norm=True, head_gate="use_attention_gate", more_norms="use_sandwich_norm",
        mixing=_mixing(short_convolution, _patterned(_WINDOW, _MIXER, _ATTENTION, _MIXER, first=_MIXER)),
    ),
    "lfm2_moe": replace(_SHORT, experts=Mixture(first_dense="num_dense_layers")),
    "minimax": Family(
        refused={"sliding_window": None}, experts=Mixture("intermediate_size"),
        mixing=_mixing(lightning, lambda fields, layers: _kinds(fields, layers, lambda layer: layer % 2 == 0)),
    ),
    "olmo_hybrid": replace(BIASED, qk_norm=True, whole_norm=True, mixing=_mixing(gated_delta, _one_at_least)),
    "qwen3_5_moe_text": replace(_DELTA, experts=_MIXTURE),
    "qwen3_5_text": _DELTA,
    "qwen3_next": replace(_DELTA, experts=replace(_MIXTURE, every="decoder_sparse_step", dense="mlp_only_layers")),
    "recurrent_gemma": Family(
        qkv_bias=BIAS, output_bias=True, mlp_bias=True, adjusted_width=lambda _, width: width // 2,
        mixing=_mixing(rg_lru, _blocks),
    ),
}  # fmt: skip


_MAMBA = MambaNames(
    inner="intermediate_size", state="state_size", taps="conv_kernel", expand="expand", rank="time_step_rank",
    convolution_bias="use_conv_bias", opening_bias="use_bias", closing_bias="use_bias",
)  # fmt: skip
_MAMBA2 = replace(_MAMBA, inner="", rank="", heads="num_heads", head="head_dim", groups="n_groups", chunk="chunk_size")
_NEMOTRON = replace(_MAMBA2, state="ssm_state_size", expand="", heads="mamba_num_heads", head="mamba_head_dim")


def _mamba_alone(fields: Fields) -> Model:
    """Return a model whose layers are mixers alone."""
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    mixer = mamba(_MAMBA2 if fields.family == "mamba2" else _MAMBA, fields, hidden)
    return model_of_layers(fields, hidden, (Layer(None, None, 1, mixer=mixer),) * layers)


_PATTERN: Mapping[str, str] = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron(fields: Fields) -> Model:
    """Return a model whose layers are a mixer, attention, an MLP or experts, each with one norm."""
    pattern, hidden = fields.values.get("hybrid_override_pattern"), fields.count("hidden_size")
    kinds = fields.listed("layers_block_type")
    if kinds is None and isinstance(pattern, str):
        kinds = [_PATTERN.get(letter, letter) for letter in pattern]
    if not kinds:
        raise fields.wrong("layers_block_type", "none, nor a hybrid_override_pattern, against a kind for every layer")
    if len(kinds) > MOST_LAYERS:
        raise fields.wrong("layers_block_type", f"{len(kinds)} layers against at most {MOST_LAYERS}")
    made: dict[str, Layer] = {}
    for kind in dict.fromkeys(map(str, kinds)):
        word = _WORDS.get(kind, kind)
        if word == _MIXER:
            made[kind] = Layer(None, None, 1, mixer=mamba(_NEMOTRON, fields, hidden))
        elif word == _ATTENTION:
            made[kind] = Layer(grouped_attention(Family(), fields, hidden), None, 1)
        elif word == "mlp":
            made[kind] = Layer(
                None, DenseMlp(fields.count("intermediate_size"), gated=False, bias=fields.flag("mlp_bias")), 1
            )
        elif word == "moe":
            made[kind] = Layer(None, _plain_experts(fields), 1)
        else:
            raise fields.wrong("layers_block_type", f"{kind!r} against {', '.join(_PATTERN.values())}")
    return model_of_layers(fields, hidden, tuple(made[str(kind)] for kind in kinds), tied=_UNTIED)


def _plain_experts(fields: Fields) -> Experts:
    experts = fields.experts(("n_routed_experts",), ("num_experts_per_tok",))
    if fields.flag("mlp_bias"):
        raise fields.wrong("mlp_bias", "true, which is not modelled of experts, against false")
    width, shared = fields.count("moe_intermediate_size"), fields.count("moe_shared_expert_intermediate_size")
    return Experts(*experts, width, shared, gated=False, latent=fields.optional("moe_latent_size"))


_OF_KIMI: Mapping[str, str] = {
    "head_dim": "linear_head_dim", "num_heads": "linear_num_heads", "short_conv_kernel_size": "linear_conv_kernel_dim",
}  # fmt: skip


def _delta_beside_latent(fields: Fields) -> Model:
    """Return a model of gated delta rules that have a decay for every element of a key, and of latent attention."""
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    is_kimi, attention, width = fields.family == "kimi_linear", latent_attention(fields), fields.count(_EXPERT_WIDTH)
    nested = fields.values.get("linear_attn_config") or {}
    if not isinstance(nested, dict):
        raise fields.wrong("linear_attn_config", f"{nested!r} against keys")
    # The names of the class win: a file may have a head_dim of its own, which is of attention.
    flat = {name: nested[key] for key, name in _OF_KIMI.items() if key in nested}
    inner = replace(fields, values={**fields.values, **flat, "full_attn_layers": nested.get("full_attn_layers")})
    heads = inner.count("linear_num_heads") if is_kimi else attention.heads
    dim = inner.count("linear_head_dim") if is_kimi else fields.count("head_dim")
    mixer = Mixer(
        Rule.DELTA, heads, dim, heads, dim,
        gates=0 if is_kimi else 1, head_columns=1, key_decays=True, low_rank=dim if is_kimi else 0, chunk=CHUNK,
        taps=inner.count("linear_conv_kernel_dim" if is_kimi else "short_conv_kernel_size"),
        head_vectors=dim + 1, norm_parameters=dim,
    )  # fmt: skip
    counts, chosen = ("num_experts", "num_local_experts"), ("num_experts_per_token", "num_experts_per_tok")
    numbers, shared = fields.experts(counts, chosen), fields.count("num_shared_experts", "n_shared_experts")
    experts = Experts(*numbers, width, shared * width)
    first, dense = fields.count("first_k_dense_replace", least=0), DenseMlp(fields.count("intermediate_size"))
    if is_kimi:
        listed = inner.layers_in("full_attn_layers")  # counted from 1
        kinds = _kinds(fields, layers, lambda layer: layer + 1 in listed if listed else layer % 4 == 0 < layer)
    else:
        period, attention = fields.count("layer_group_size"), replace(attention, gate_dim=1)
        kinds = _kinds(fields, layers, lambda layer: (layer + 1) % period == 0)
    made = []
    for kind, is_sparse in zip(kinds, sparse_layers(fields, layers, lambda layer: layer >= first), strict=True):
        mlp = experts if is_sparse else dense
        made.append(Layer(attention, mlp) if kind == _ATTENTION else Layer(None, mlp, mixer=mixer))
    return model_of_layers(fields, hidden, tuple(made), tied=_UNTIED)


RECURRENT: Mapping[str, Callable[[Fields], Model]] = {
    **dict.fromkeys(("falcon_mamba", "mamba", "mamba2"), _mamba_alone),
    **dict.fromkeys(("bailing_hybrid", "kimi_linear"), _delta_beside_latent),
    "nemotron_h": _nemotron,
}

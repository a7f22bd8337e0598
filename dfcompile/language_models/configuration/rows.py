"""The table of families: a row per `model_type` that is an ordinary decoder but for what its row says [hf].

The usual decoder has grouped attention and a gated MLP between two norms. A row says how a class differs from it, and
which fields of a file say so.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.model import Layer
from dfcompile.records import replace

Said = bool | str  # a truth value of the class, or the field that says it
Names = tuple[str, ...]  # of a field, in order of preference


class Mixture(Struct, frozen=True):
    """Experts of a family.

    Attributes:
        width: field of one expert's.
        shared_count: field of how many experts of that width all tokens use; a number if the class has so many.
        shared_width: field of the width of all shared experts together.
        shared_gate: whether the shared experts have a gate of their own.
        router_bias: whether each expert has a bias in the router, be it for balance alone.
        least: experts that make a mixture; if there are fewer, tokens have the shared ones alone, or the family's MLP.
        first_dense: field of how many layers at the beginning have none; a number if the class has so many.
        every: field of the period of layers that have some.
        offset: field of which layer of a period has some; the last one without.
        dense: field of a list of layers that have none.
        last: field of the last layer that has some; below 0 counted from the end.
    """

    width: str = "moe_intermediate_size"
    shared_count: str | int = 0
    shared_width: str = ""
    shared_gate: bool = False
    router_bias: bool = False
    least: int = 0
    first_dense: str | int = 0
    every: str = ""
    offset: str = ""
    dense: str = ""
    last: str = ""


class Windows(Struct, frozen=True):
    """Which layers of a family see a window, where the file has no `layer_types`.

    Attributes:
        period: full attention once in so many layers: a number, or the field of it; 0: nowhere.
        is_first: whether it is the first of them rather than the last.
        before: field of how many layers at the beginning are full.
    """

    period: int | str = 0
    is_first: bool = False
    before: str = ""


class Family(Struct, frozen=True, kw_only=True):
    """A row: how a class differs from the usual decoder.

    Attributes:
        hidden: fields of the elements of a token.
        layers: fields of their number.
        heads: fields of query heads.
        kv_heads: fields of heads of keys and values; none: as many as query heads.
        single_kv: a field that makes them one.
        width: fields of the MLP's; left out or null it is ``4 hidden``, if ``widens``.
        widens: whether the MLP's width has that default.
        adjusted_width: what the class makes of the width.
        gated: whether the MLP has three matrices.
        qkv_bias: of queries, keys and values.
        key_bias: of keys, where queries and values have biases.
        output_bias: of the attention's last matrix.
        mlp_bias: of all matrices of the MLP.
        gate: whether the results of attention pass a gate as wide as they are.
        gate_bias: of the gate.
        head_gate: whether the results of each head pass a gate of one column.
        qk_norm: whether queries and keys have norms, of a head each, or of all heads if ``whole_norm``.
        whole_norm: whether these norms are of all heads.
        sinks: whether each head has one.
        norms: of a layer; 1 where attention and MLP stand side by side.
        side_by_side: a field that makes it so.
        more_norms: a field that adds norms after attention and MLP.
        norm_weights: whether norms have weights.
        norm_biases: whether they have biases.
        extra: further elements of a layer as ``(heads x head, kv heads x head, head, hidden, width, 1)`` times these.
        positions: fields of learned positions; empty: none.
        further_positions: that the class adds.
        tied: fields of whether the head is the embedding.
        head_bias: of the head.
        embedding_norm: whether a norm follows the embedding.
        last_norm: whether a norm precedes the head.
        encoder: fields of the tokens of an encoder that every layer attends to as well; none: there is no encoder.
        may_cross: whether there may be one all the same, of images, for which each layer has one more norm.
        windows: which layers see a window; none: all are full.
        experts: instead of the MLP.
        mixing: puts recurrent mixers in the place of attention, or beside it.
        refused: fields that have to be as here, or left out.
    """

    hidden: Names = ("hidden_size",)
    layers: Names = ("num_hidden_layers",)
    heads: Names = ("num_attention_heads",)
    kv_heads: Names = ("num_key_value_heads",)
    single_kv: str = ""
    width: Names = ("intermediate_size",)
    widens: bool = False
    adjusted_width: Callable[[Fields, int], int] | None = None
    gated: bool = True
    qkv_bias: Said = False
    key_bias: bool = True
    output_bias: Said = False
    mlp_bias: Said = False
    gate: bool = False
    gate_bias: Said = False
    head_gate: Said = False
    qk_norm: Said = False
    whole_norm: bool = False
    sinks: bool = False
    norms: int = 2
    side_by_side: str = ""
    more_norms: str = ""
    norm_weights: bool = True
    norm_biases: bool = False
    extra: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    positions: Names = ()
    further_positions: int = 0
    tied: Names = ("tie_word_embeddings",)
    head_bias: Said = False
    embedding_norm: bool = False
    last_norm: bool = True
    encoder: Names = ()
    may_cross: bool = False
    windows: Windows | None = None
    experts: Mixture | None = None
    mixing: Callable[[Fields, tuple[Layer, ...]], tuple[Layer, ...]] | None = None
    refused: Mapping[str, object] = {}


BIAS, _MLP_BIAS, _USE = "attention_bias", "mlp_bias", "use_bias"
LLAMA = Family(qkv_bias=BIAS, output_bias=BIAS, mlp_bias=_MLP_BIAS)
BIASED = Family(qkv_bias=BIAS, output_bias=BIAS)
_WHOLE_NORM = Family(qkv_bias=BIAS, output_bias=BIAS, qk_norm=True, whole_norm=True)
_MISTRAL = Family(windows=Windows())
PLAIN = Family(kv_heads=(), gated=False, qkv_bias=True, output_bias=True, mlp_bias=True, norm_biases=True)
_GPT = replace(
    PLAIN,
    hidden=("n_embd", "hidden_size"),
    layers=("n_layer", "num_hidden_layers"),
    heads=("n_head", "num_attention_heads"),
    width=("n_inner",),
    widens=True,
)
_GPT_LEARNED = replace(_GPT, positions=("n_positions", "max_position_embeddings"))
_GPTJ = replace(_GPT, qkv_bias=False, output_bias=False, norms=1, head_bias=True)
_OPT = replace(PLAIN, width=("ffn_dim",), positions=("max_position_embeddings",), further_positions=2)
_DECODER = replace(
    _OPT,
    hidden=("d_model",),
    layers=("decoder_layers",),
    heads=("decoder_attention_heads",),
    width=("decoder_ffn_dim",),
    norms=3,
    encoder=("max_position_embeddings",),
)
_BART = replace(_DECODER, embedding_norm=True, last_norm=False)
_SHARED_WIDTH = Mixture("intermediate_size", shared_width="shared_intermediate_size")
_SHARED = Mixture(shared_count="n_shared_experts", first_dense="first_k_dense_replace")

ROWS: Mapping[str, Family] = {
    "afmoe": Family(
        gate=True, qk_norm=True, norms=4, windows=Windows("global_attn_every_n_layers"), qkv_bias=BIAS,
        output_bias=BIAS,
        experts=Mixture(shared_count="num_shared_experts", first_dense="num_dense_layers", router_bias=True),
    ),
    "apertus": replace(BIASED, gated=False, qk_norm=True, extra=(0, 0, 0, 0, 0, 2)),
    "apertus1p5_text": replace(BIASED, gated=False, qk_norm=True, extra=(0, 0, 0, 0, 0, 2)),
    "arcee": replace(LLAMA, gated=False),
    "aria_text": replace(
        BIASED, refused={_MLP_BIAS: False},
        experts=Mixture("intermediate_size", shared_count="moe_num_shared_experts"),
    ),
    **dict.fromkeys(("bart", "plbart"), _BART),
    "bigbird_pegasus": replace(_BART, further_positions=0, qkv_bias=_USE, output_bias=_USE),
    "biogpt": replace(_OPT, width=("intermediate_size",)),
    "bitnet": replace(BIASED, extra=(0, 0, 0, 1, 1, 0)),
    "blenderbot": replace(_DECODER, further_positions=0),
    "blenderbot-small": replace(_BART, further_positions=0),
    "bloom": replace(_GPT, hidden=("hidden_size", "n_embed"), width=("ffn_hidden_size",), embedding_norm=True),
    **dict.fromkeys(("codegen", "gptj"), _GPTJ),
    "cohere": replace(BIASED, norms=1, qk_norm="use_qk_norm", whole_norm=True),
    "cohere2": replace(BIASED, norms=1, windows=Windows("sliding_window_pattern")),
    "ctrl": replace(_GPT, width=("dff",), widens=False, head_bias=True),
    "cwm": Family(mlp_bias=_MLP_BIAS, windows=Windows(4, is_first=True)),
    "diffllama": replace(BIASED, extra=(0, 0, 4, 0, 0, 0)),
    "dots1": replace(BIASED, qk_norm=True, experts=_SHARED, windows=Windows(before="max_window_layers")),
    **dict.fromkeys(("ernie4_5", "paddleocr_vl_text"), Family(qkv_bias=_USE, output_bias=_USE, mlp_bias=_USE)),
    "ernie4_5_moe": Family(
        qkv_bias=_USE, output_bias=_USE, refused={_USE: False},
        experts=Mixture(
            shared_count="moe_num_shared_experts", router_bias=True, first_dense="moe_layer_start_index",
            every="moe_layer_interval", last="moe_layer_end_index",
        ),
    ),
    "exaone": replace(LLAMA, layers=("num_hidden_layers", "num_layers")),
    "exaone4": Family(qk_norm=True, windows=Windows("sliding_window_pattern")),
    "exaone_moe": Family(
        qk_norm=True, windows=Windows("sliding_window_pattern"),
        experts=Mixture(shared_count="num_shared_experts", first_dense="first_k_dense_replace"),
    ),
    "falcon": replace(
        PLAIN, single_kv="multi_query", width=("ffn_hidden_size",), widens=True, qkv_bias="bias", output_bias="bias",
        mlp_bias="bias", side_by_side="parallel_attn",
    ),
    "flex_olmo": replace(_WHOLE_NORM, experts=Mixture("intermediate_size")),
    "gemma": BIASED,
    "glm": Family(qkv_bias=BIAS),
    "glm4": Family(qkv_bias=BIAS, norms=4),
    "glm4_moe": Family(qkv_bias=BIAS, qk_norm="use_qk_norm", experts=_SHARED),
    "glm4v_moe_text": Family(qkv_bias=BIAS, experts=_SHARED),
    "glm4v_text": Family(qkv_bias=True, norms=4),
    "glm_ocr_text": Family(norms=4),
    "gpt2": replace(_GPT_LEARNED, may_cross=True),
    "gpt-sw3": _GPT_LEARNED,
    "gpt_bigcode": replace(_GPT_LEARNED, single_kv="multi_query"),
    "gpt_neox": replace(PLAIN, qkv_bias=BIAS, output_bias=BIAS),
    **dict.fromkeys(("granite", "granite4_vision_text", "granite_docling_text", "iquestcoder", "llama"), LLAMA),
    "granite_swa": replace(LLAMA, sinks=True, windows=Windows(4, is_first=True)),
    "granitemoe": replace(BIASED, experts=Mixture("intermediate_size")),
    "granitemoe_swa": replace(BIASED, sinks=True, windows=Windows(4, is_first=True), experts=_SHARED_WIDTH),
    "granitemoeshared": replace(BIASED, experts=_SHARED_WIDTH),
    "helium": Family(qkv_bias=BIAS, mlp_bias=_MLP_BIAS),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_vl_text", "qwen3_vl_text"), replace(BIASED, qk_norm=True)),
    "hunyuan_v1_moe": replace(BIASED, qk_norm=True, experts=Mixture("intermediate_size", shared_count=1)),
    "hy_v3": replace(
        BIASED, qk_norm=True, refused={_MLP_BIAS: False},
        experts=Mixture(shared_count="num_shared_experts", first_dense=1),
    ),
    "hyperclovax": replace(LLAMA, more_norms="use_post_norm"),
    "internlm3": Family(qkv_bias="bias", output_bias="bias", mlp_bias="bias"),
    "jais2": replace(LLAMA, gated=False, norm_biases=True),
    "kolibri1": Family(
        qk_norm=True, norms=4, windows=Windows(5), experts=Mixture(shared_width="shared_expert_intermediate_size")
    ),
    "led": replace(
        _BART, positions=("max_decoder_position_embeddings",), further_positions=0,
        encoder=("max_encoder_position_embeddings",),
    ),
    "m2m_100": replace(_DECODER, positions=(), further_positions=0),
    "marian": replace(
        _DECODER, further_positions=0, last_norm=False, refused={"share_encoder_decoder_embeddings": True}
    ),
    "mbart": replace(_DECODER, embedding_norm=True),
    "mellum": replace(BIASED, qk_norm=True, windows=Windows(1), experts=Mixture()),
    "minimax_m2": Family(qk_norm=True, whole_norm=True, experts=Mixture("intermediate_size")),
    **dict.fromkeys(("ministral", "ministral3", "mistral", "phi3", "phi4_multimodal"), _MISTRAL),
    "mixtral": replace(_MISTRAL, experts=Mixture("intermediate_size")),
    "mpt": Family(
        hidden=("d_model",), layers=("n_layers",), heads=("n_heads",), kv_heads=(), widens=True, gated=False,
        refused={"expansion_ratio": 4},
    ),
    "mvp": replace(_BART, refused={"use_prompt": False}),
    "nanochat": replace(BIASED, gated=False, norm_weights=False),
    "nemotron": replace(LLAMA, gated=False, norm_biases=True),
    "olmo": replace(BIASED, norm_weights=False),
    "olmo2": _WHOLE_NORM,
    "olmo3": replace(_WHOLE_NORM, windows=Windows(4)),
    "olmoe": replace(_WHOLE_NORM, experts=Mixture("intermediate_size")),
    "openai-gpt": replace(_GPT_LEARNED, last_norm=False),
    "opt": replace(_OPT, refused={"enable_bias": True, "layer_norm_elementwise_affine": True}),
    "pegasus": replace(_DECODER, further_positions=0),
    "pegasus_x": replace(_DECODER, positions=(), further_positions=0, qkv_bias=False, output_bias=False),
    "persimmon": replace(PLAIN, qk_norm="qk_layernorm"),
    "phi": Family(
        gated=False, qkv_bias=True, output_bias=True, mlp_bias=True, norm_biases=True, norms=1, head_bias=True,
        refused={"qk_layernorm": False},
    ),
    "phimoe": replace(
        BIASED, norm_biases=True, windows=Windows(), experts=Mixture("intermediate_size"),
        head_bias="lm_head_bias",
    ),
    "sarvam_moe": Family(qkv_bias=BIAS, qk_norm="use_qk_norm", experts=_SHARED),
    "seed_oss": Family(qkv_bias=BIAS, output_bias="attention_out_bias", mlp_bias=_MLP_BIAS),
    "smollm3": replace(LLAMA, refused={"use_sliding_window": False}),
    "solar_open": Family(qkv_bias=BIAS, experts=Mixture(shared_count="n_shared_experts")),
    "stablelm": Family(
        qkv_bias="use_qkv_bias", norm_biases=True, side_by_side="use_parallel_residual", refused={"qk_layernorm": False}
    ),
    "starcoder2": Family(
        gated=False, qkv_bias=_USE, output_bias=_USE, mlp_bias=_USE, norm_biases=True, windows=Windows()
    ),
    "vaultgemma": replace(BIASED, windows=Windows(2)),
    "whisper": replace(
        _DECODER, positions=("max_target_positions",), further_positions=0, encoder=("max_source_positions",),
        key_bias=False,
    ),
    "xglm": replace(
        _OPT, hidden=("d_model",), layers=("num_layers",), heads=("attention_heads",), positions=(), further_positions=0
    ),
}  # fmt: skip

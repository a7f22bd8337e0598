"""Small configurations of families with recurrent mixers, and what `transformers` builds of them.

``python -m tests.built_hybrids`` writes `tests/data/llm/built_hybrids.jsonl` anew: `VARIATIONS` of each family,
with the parameters of the model that `transformers` builds on the meta device, and the kinds of its layers.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.built_families import VARIATIONS, built

BUILT = Path(__file__).parent / "data" / "llm" / "built_hybrids.jsonl"
Drawn = dict[str, object]


def drawn_hybrid(draw: random.Random, family: str) -> Drawn:
    """Fields of a small model: sizes, truth values, and which layers have a mixer; some are left out."""
    kv = draw.choice([1, 2])
    heads = kv * draw.choice([1, 2, 3])
    values: Drawn = {
        "model_type": family,
        "vocab_size": draw.randint(20, 300),
        "hidden_size": 16 * heads * draw.randint(1, 3),
        "intermediate_size": draw.randint(8, 99),
        "num_hidden_layers": draw.randint(2, 6),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "tie_word_embeddings": draw.choice([True, False]),
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    return values | _FAMILIES[family](draw, values)


def _said(draw: random.Random, *names: str) -> Drawn:
    return {name: draw.choice([True, False]) for name in names}


def _sized(draw: random.Random, *names: str, least: int = 2, most: int = 9) -> Drawn:
    return {name: draw.randint(least, most) for name in names}


def _layers(values: Drawn) -> range:
    return range(int(str(values["num_hidden_layers"])))


def _hidden(values: Drawn) -> int:
    return int(str(values["hidden_size"]))


def _experts(draw: random.Random, name: str = "num_experts", most: int = 6) -> Drawn:
    count = draw.randint(2, most)
    return {name: count, "num_experts_per_tok": draw.randint(1, count)}


def _heads(draw: random.Random, values: Drawn, heads: str, head: str) -> Drawn:
    """Heads of twice the hidden size."""
    dim = draw.choice([4, 8])
    return {heads: 2 * _hidden(values) // dim, head: dim}


def _mamba_two(draw: random.Random, values: Drawn) -> Drawn:
    return {
        **_heads(draw, values, "mamba_n_heads", "mamba_d_head"),
        **_sized(draw, "mamba_d_state", "mamba_d_conv"),
        **_said(draw, "mamba_proj_bias", "mamba_conv_bias", "attention_bias", "mlp_bias"),
        "mamba_n_groups": draw.choice([1, 2]),
        "mamba_expand": 2,
        "mamba_chunk_size": 8,
    }


def _bamba(draw: random.Random, values: Drawn) -> Drawn:
    return _mamba_two(draw, values) | {"attn_layer_indices": draw.choice([None, [0], [1]])}


def _falcon_h1(draw: random.Random, values: Drawn) -> Drawn:
    inner = {"mamba_d_ssm": draw.choice([None, 2 * _hidden(values)])}
    return _mamba_two(draw, values) | _said(draw, "projectors_bias", "mamba_rms_norm") | inner


def _granite(draw: random.Random, values: Drawn) -> Drawn:
    return {
        **_mamba_two(draw, values),
        "layer_types": [draw.choice(["mamba", "attention"]) for _ in _layers(values)],
        "num_local_experts": draw.choice([0, 5]),
        "num_experts_per_tok": draw.randint(1, 5),
        **_sized(draw, "shared_intermediate_size", most=99),
    }


def _jamba(draw: random.Random, _: Drawn) -> Drawn:
    return {
        **_sized(draw, "mamba_d_state", "mamba_d_conv"),
        "mamba_dt_rank": draw.choice(["auto", 5]),
        **draw.choice([{"num_experts": 1, "num_experts_per_tok": 1}, _experts(draw)]),
        "expert_layer_period": 2,
        "expert_layer_offset": draw.randint(0, 1),
        "attn_layer_period": 3,
        "attn_layer_offset": draw.randint(0, 2),
        **_said(draw, "mamba_conv_bias", "mamba_proj_bias"),
    }


def _mamba(draw: random.Random, _: Drawn) -> Drawn:
    """Its width is the one of the file, rather than the expansion."""
    rank: Drawn = draw.choice([{}, {"time_step_rank": 3}])
    return _sized(draw, "state_size", "conv_kernel", "expand") | _said(draw, "use_bias", "use_conv_bias") | rank


def _mamba2(draw: random.Random, values: Drawn) -> Drawn:
    sizes = {**_mamba(draw, values), "expand": 2, "num_heads": _hidden(values) // 4, "head_dim": 8}
    return sizes | {"n_groups": draw.choice([1, 2, 4]), "chunk_size": 8}


def _nemotron_h(draw: random.Random, values: Drawn) -> Drawn:
    letters = "M" + "".join(draw.choice("M*-E") for _ in _layers(values)[1:])
    words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    kinds: Drawn = {"layers_block_type": [words[letter] for letter in letters]}
    return {
        **draw.choice([kinds, {"hybrid_override_pattern": letters}]),
        **_heads(draw, values, "mamba_num_heads", "mamba_head_dim"),
        **_sized(draw, "ssm_state_size", "conv_kernel"),
        **_sized(draw, "moe_intermediate_size", "moe_shared_expert_intermediate_size", most=99),
        **_experts(draw, "n_routed_experts"),
        "moe_latent_size": draw.choice([None, draw.randint(2, 30)]),
        "n_groups": draw.choice([1, 2]),
        "chunk_size": 8,
        "head_dim": 10,
        **_said(draw, "use_bias", "use_conv_bias"),
        "mlp_bias": "E" not in letters and draw.choice([True, False]),
    }


def _minimax(draw: random.Random, _: Drawn) -> Drawn:
    dim: Drawn = draw.choice([{}, {"head_dim": 12}])
    return _experts(draw, "num_local_experts") | dim | {"block_size": 8}


def _lfm2(draw: random.Random, _: Drawn) -> Drawn:
    otherwise: Drawn = draw.choice([{}, {"block_ff_dim": 77}, {"tie_embedding": False}])
    return {
        **_said(draw, "conv_bias", "block_auto_adjust_ff_dim"),
        **_sized(draw, "conv_L_cache"),
        "full_attn_idxs": draw.choice([None, [0], [1]]),
        "block_multiple_of": 16,
        "block_ffn_dim_multiplier": draw.choice([1.0, 1.3]),
        **otherwise,
    }


def _lfm2_moe(draw: random.Random, values: Drawn) -> Drawn:
    return {
        **_said(draw, "conv_bias"),
        **_sized(draw, "conv_L_cache"),
        **_experts(draw),
        **_sized(draw, "moe_intermediate_size", most=99),
        "num_dense_layers": draw.randint(0, 2),
        "layer_types": [draw.choice(["conv", "full_attention"]) for _ in _layers(values)],
    }


def _delta(draw: random.Random, _: Drawn) -> Drawn:
    groups = draw.choice([1, 2])
    return {
        "linear_num_key_heads": groups,
        "linear_num_value_heads": groups * draw.choice([1, 2]),
        **_sized(draw, "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim"),
        **_said(draw, "attention_bias"),
    }


def _olmo_hybrid(draw: random.Random, values: Drawn) -> Drawn:
    derived = dict.fromkeys(draw.choice([(), ("linear_key_head_dim", "linear_value_head_dim")]))
    return _delta(draw, values) | derived


def _qwen3_5(draw: random.Random, values: Drawn) -> Drawn:
    period: Drawn = {"full_attention_interval": draw.choice([2, 3])}
    kinds: Drawn = {"layer_types": ["linear_attention" for _ in _layers(values)]}
    return _delta(draw, values) | {"head_dim": 12} | draw.choice([period, kinds])


def _qwen3_5_moe(draw: random.Random, values: Drawn) -> Drawn:
    widths = _sized(draw, "moe_intermediate_size", "shared_expert_intermediate_size", most=99)
    return _qwen3_5(draw, values) | _experts(draw) | widths


def _qwen3_next(draw: random.Random, values: Drawn) -> Drawn:
    dense: Drawn = {"mlp_only_layers": draw.choice([None, [1]]), "decoder_sparse_step": draw.choice([1, 2])}
    return _qwen3_5_moe(draw, values) | dense


def _bailing(draw: random.Random, values: Drawn) -> Drawn:
    return {
        **{name: drawn for name, drawn in _kimi_linear(draw, values).items() if not name.startswith("linear_")},
        "head_dim": draw.randint(2, 9),
        "short_conv_kernel_size": draw.randint(2, 5),
        "layer_group_size": 2,
        "n_group": 1,
        "topk_group": 1,
    }


def _lfm3(draw: random.Random, values: Drawn) -> Drawn:
    kinds: Drawn = {
        "layer_types": [draw.choice(["conv", "full_attention", "sliding_attention"]) for _ in _layers(values)]
    }
    return {
        **_said(draw, "conv_bias", "attention_bias", "use_sandwich_norm", "use_attention_gate"),
        **_sized(draw, "conv_L_cache"),
        **draw.choice([{}, kinds]),
        "head_dim": 12,
        "sliding_window": 16,
    }


def _lara_mini(draw: random.Random, values: Drawn) -> Drawn:
    widths = _sized(draw, "moe_intermediate_size", "shared_expert_intermediate_size", most=99)
    kinds: Drawn = {"layer_types": ["full_attention", *("linear_attention" for _ in _layers(values)[1:])]}
    further: Drawn = draw.choice([{}, kinds])
    return _delta(draw, values) | _experts(draw) | widths | {"head_dim": 12, "sliding_window": 16} | further


def _kimi_linear(draw: random.Random, values: Drawn) -> Drawn:
    layers = len(_layers(values))
    attending = draw.sample(range(1, layers + 1), 1)
    sizes = {"head_dim": draw.randint(2, 9), "num_heads": draw.randint(1, 3), "short_conv_kernel_size": 3}
    kinds = {"full_attn_layers": attending, "kda_layers": [one for one in range(1, layers + 1) if one not in attending]}
    flat = {f"linear_{name}": draw.randint(1, 5) for name in ("head_dim", "num_heads", "conv_kernel_dim")}
    flat["head_dim"] = 4  # of attention
    return {
        **draw.choice([flat, {"linear_attn_config": sizes | kinds}]),
        **_experts(draw, "num_experts"),
        **_sized(draw, "moe_intermediate_size", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim", most=30),
        "num_key_value_heads": None,
        "qk_rope_head_dim": 4,
        "q_lora_rank": draw.choice([None, 7]),
        "num_shared_experts": draw.randint(1, 2),
        "first_k_dense_replace": draw.randint(0, 2),
        **_said(draw, "attention_bias"),
    }


def _recurrent_gemma(draw: random.Random, values: Drawn) -> Drawn:
    heads = int(str(values["num_attention_heads"]))
    kinds: Drawn = draw.choice([{}, {"block_types": ["attention", "recurrent"]}])
    return {
        "lru_width": draw.choice([None, heads * draw.randint(2, 9)]),
        "conv1d_width": draw.randint(2, 5),
        "attention_window_size": 16,
        **_said(draw, "attention_bias"),
        **kinds,
    }


_FAMILIES: Mapping[str, Callable[[random.Random, Drawn], Drawn]] = {
    "bailing_hybrid": _bailing,
    "bamba": _bamba,
    "falcon_h1": _falcon_h1,
    "falcon_mamba": _mamba,
    "granitemoehybrid": _granite,
    "jamba": _jamba,
    "kimi_linear": _kimi_linear,
    "lara_mini": _lara_mini,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2_moe,
    "lfm3": _lfm3,
    "mamba": _mamba,
    "mamba2": _mamba2,
    "minimax": _minimax,
    "nemotron_h": _nemotron_h,
    "olmo_hybrid": _olmo_hybrid,
    "qwen3_5_moe_text": _qwen3_5_moe,
    "qwen3_5_text": _qwen3_5,
    "qwen3_next": _qwen3_next,
    "recurrent_gemma": _recurrent_gemma,
}
HYBRID = tuple(_FAMILIES)


def main() -> int:
    """Write the file."""
    asked = []
    for family in HYBRID:
        draw = random.Random(f"45 {family}")
        asked += [drawn_hybrid(draw, family) for _ in range(VARIATIONS)]
    found = zip(asked, built(asked), strict=True)
    rows = ({"values": one, "total": total, "types": types} for one, (total, types) in found)
    BUILT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

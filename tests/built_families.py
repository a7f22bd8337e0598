"""Small configurations of the table of families, and what `transformers` builds of them.

``python -m tests.built_families`` writes `tests/data/llm/built_families.jsonl` anew: `VARIATIONS` of each row, with the
parameters of the model that `transformers` builds on the meta device, and the kind of attention of each layer; and
`built_others.jsonl`, the same of the types that are no rows.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dfcompile.language_models.configuration.reading import TEXT_TYPES
from dfcompile.language_models.configuration.rows import ROWS, Family, Windows

BUILT = Path(__file__).parent / "data" / "llm" / "built_families.jsonl"
OTHERS_BUILT = BUILT.with_name("built_others.jsonl")
SEEING_BUILT = BUILT.with_name("built_seeing.jsonl")
NESTED_BUILT = BUILT.with_name("built_nested.jsonl")
VARIATIONS = 10
BUILD = '''
import importlib, json, re, sys, torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
ENCODED = AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq


def of_text(config):
    """The text model of one that sees or hears as well, which has no head of its own."""
    module = importlib.import_module(type(config).__module__.replace("configuration", "modeling"))
    kinds = (one for one in vars(module).values() if getattr(one, "config_class", None) is type(config))
    return next(one for one in kinds if re.search("(?<!PreTrained)Model$", one.__name__))(config)


def parts(config, is_tied):
    if not config.is_encoder_decoder and type(config) not in AutoModelForCausalLM._model_mapping:
        model, size = of_text(config), (config.hidden_size, config.vocab_size)
        return [model] if is_tied else [model, torch.nn.Linear(*size, bias=False)]
    if not config.is_encoder_decoder:
        model = AutoModelForCausalLM.from_config(config)
        if hasattr(model.base_model, "embed_tokens_extend"):
            del model.base_model.embed_tokens_extend  # what sees and hears
        return [model]
    (kind,) = (kind for kind in ENCODED if type(config) in kind._model_mapping)
    model = kind.from_config(config)
    return [model.get_decoder(), model.get_output_embeddings()]


for line in sys.stdin:
    values = json.loads(line)
    is_tied = values.get("tie_word_embeddings")
    config = CONFIG_MAPPING[values.pop("model_type")](**values)
    with torch.device("meta"):
        counted = {id(one): one.numel() for part in parts(config, is_tied) for one in part.parameters()}
    types = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    print(json.dumps([sum(counted.values()), types]), flush=True)
'''
# The text model of a type with defaults alone, without its head.
BUILD_NESTED = """
import importlib, json, sys, torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
for line in sys.stdin:
    values = json.loads(line)
    config = CONFIG_MAPPING[values.pop("model_type")](**values).get_text_config(decoder=True)
    with torch.device("meta"):
        if type(config) in AutoModelForCausalLM._model_mapping:
            model = AutoModelForCausalLM.from_config(config)
            model.set_output_embeddings(torch.nn.Identity())
            if hasattr(model.base_model, "embed_tokens_extend"):
                del model.base_model.embed_tokens_extend
        else:
            module = importlib.import_module(type(config).__module__.replace("configuration", "modeling"))
            kinds = (one for one in vars(module).values() if getattr(one, "config_class", None) is type(config))
            model = next(one for one in kinds if one.__name__.endswith("TextModel"))(config)
    print(json.dumps([config.model_type, sum(one.numel() for one in model.parameters())]), flush=True)
"""
# Fields without which classes have no default model.
_INNER: Mapping[str, Mapping[str, object]] = {
    **{name: {"text_config": {"head_dim": 128}} for name in ("glm4v_moe", "hunyuan_vl", "qwen3_omni_moe_thinker")},
    "phi4_multimodal": {},
    "qwen3_omni_moe": {"thinker_config": {"text_config": {"head_dim": 128}}},
}
# The decoder of one that sees, and the tokens of its encoder.
BUILD_SEEING = """
import json, sys, torch
from transformers import VisionEncoderDecoderConfig, VisionEncoderDecoderModel
for line in sys.stdin:
    values = json.loads(line)
    values.pop("model_type")
    config = VisionEncoderDecoderConfig(**values)
    with torch.device("meta"), torch.no_grad():
        model = VisionEncoderDecoderModel(config)
        size = config.encoder.image_size
        image = torch.zeros((1, 3, *(size if isinstance(size, list) else (size, size))))
        tokens = model.encoder.eval()(image).last_hidden_state.shape[1]
    print(json.dumps([sum(one.numel() for one in model.decoder.parameters()), tokens]), flush=True)
"""
SEEING = ("trocr", "mbart", "gpt2")  # decoders of such models


def drawn_seeing(draw: random.Random, family: str) -> dict[str, object]:
    """Fields of a small model that reads images: an encoder, and the decoder of a family."""
    heads, width = draw.choice([2, 4]), 8 * draw.randint(1, 4)
    kind = draw.choice(["vit", "deit", "donut-swin"])
    encoder: dict[str, object] = {"model_type": kind, "image_size": 32 * draw.randint(2, 4)}
    if kind == "donut-swin":
        size = [64 * draw.randint(1, 3), 64 * draw.randint(1, 3)]
        encoder |= {
            "image_size": size,
            "embed_dim": width,
            "depths": [1, 1, 1],
            "num_heads": [1, 2, 2],
            "window_size": 4,
        }
        width *= 4
    else:
        encoder |= {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    values = {"is_decoder": True, "add_cross_attention": True, "vocab_size": draw.randint(20, 300), "pad_token_id": 1}
    if family == "gpt2":
        values |= {
            "n_embd": 16 * heads,
            "n_head": heads,
            "n_layer": draw.randint(1, 3),
            "n_positions": draw.randint(8, 99),
        }
    else:
        values |= {
            "d_model": 16 * heads, "decoder_attention_heads": heads, "decoder_layers": draw.randint(1, 3),
            "decoder_ffn_dim": draw.randint(1, 99), "max_position_embeddings": draw.randint(8, 99),
        }  # fmt: skip
    if family == "trocr":
        values |= {
            name: draw.choice([True, False]) for name in ("layernorm_embedding", "use_learned_position_embeddings")
        }
        values |= {"cross_attention_hidden_size": width}
    return {"model_type": "vision-encoder-decoder", "encoder": encoder, "decoder": {"model_type": family, **values}}


# What classes check, or derive of what is drawn here.
_OF_CLASS: Mapping[str, Mapping[str, object]] = {
    "codegen": {"rotary_dim": 4},
    "falcon": {"alibi": False},
    "gptj": {"rotary_dim": 4},
    **{name: {"head_dim": 10} for name in ("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text", "ministral")},
}


def drawn(draw: random.Random, family: str) -> dict[str, object]:
    """Fields of a small model of a row: sizes, and every truth value that the row reads."""
    row, kv = ROWS[family], 2 * draw.choice([1, 2])
    heads = kv * draw.choice([1, 2, 3])
    hidden, width = heads * 8 * draw.randint(1, 5), draw.randint(8, 99)
    values: dict[str, object] = {
        "model_type": family,
        row.hidden[0]: hidden,
        row.layers[0]: draw.randint(2, 6),
        row.heads[0]: heads,
        "vocab_size": draw.randint(20, 300),
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **dict.fromkeys(row.kv_heads, kv),
        **dict.fromkeys(row.positions, draw.randint(8, 99)),
    }
    if row.encoder:
        values |= dict.fromkeys(row.encoder, draw.randint(8, 99))
        values |= {"encoder_layers": 1, "encoder_attention_heads": heads, "encoder_ffn_dim": 8}
    if not row.widens:
        values[row.width[0]] = width
    if row.windows is not None:
        values["sliding_window"] = draw.choice([None, 16]) if row.windows == Windows() else 16
    values |= _of_experts(draw, row)
    for said in (*_said(row), "tie_word_embeddings"):
        values[said] = draw.choice([True, False])
    values |= {name: needed for name, needed in row.refused.items() if name != "expansion_ratio"}
    values |= _OF_CLASS.get(family, {})
    if family == "falcon":
        values |= {"num_kv_heads": kv, "num_ln_in_parallel_attn": draw.choice([None, 1, 2])}
        values["new_decoder_architecture"] = draw.choice([True, False])
        if not values["new_decoder_architecture"]:
            values["num_ln_in_parallel_attn"] = None
    if family == "helium":
        values["head_dim"] = hidden // heads
    if family == "opt":
        values["word_embed_proj_dim"] = draw.choice([hidden, draw.randint(1, 40)])
        values["do_layer_norm_before"] = draw.choice([True, False])
    if family == "internlm3":
        values["qkv_bias"] = values["bias"]
    return values


def _said(row: Family) -> Iterator[str]:
    said = (row.qkv_bias, row.output_bias, row.mlp_bias, row.qk_norm, row.head_bias)
    yield from (one for one in (*said, row.single_kv, row.side_by_side, row.more_norms) if isinstance(one, str) and one)


def _of_experts(draw: random.Random, row: Family) -> dict[str, object]:
    mixture = row.experts
    if mixture is None:
        return {}
    count = draw.randint(2, 6)
    names = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    chosen: dict[str, object] = dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk"), draw.randint(1, count))
    counts: dict[str, object] = dict.fromkeys(names, count)
    values = counts | chosen | {"n_group": 1, "topk_group": 1}
    for name in (mixture.width, mixture.shared_width):
        if name:
            values[name] = draw.randint(8, 99)
    for said in (mixture.shared_count, mixture.first_dense):
        if isinstance(said, str) and said:
            values[said] = draw.randint(1, 2)
    return values


OTHERS = (  # that are no rows of the table
    "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt_oss", "deepseek_v2", "deepseek_v3",
    "glm4_moe_lite", "youtu", "llama4_text",
    "t5", "mt5", "umt5", "longt5", "qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_vl_text", "qwen3_omni_moe_text",
    "qwen3_vl_moe_text", "gemma3n_text", "gemma4_text", "gemma4_unified_text", "mllama_text_model",
    "deepseek_v32", "glm_moe_dsa", "axk1", "minicpm3", "mistral4", "sarvam_mla", "gpt_neo", "dbrx", "mimo_v2_flash",
    "t5gemma",
)  # fmt: skip
Drawn = TypeVar("Drawn")
_T5 = ("t5", "mt5", "umt5", "longt5")
_LATENT = (
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "youtu",
    "axk1",
    "minicpm3",
    "mistral4",
    "sarvam_mla",
)


def _drawn_t5(draw: random.Random, family: str) -> dict[str, object]:
    return {
        "model_type": family, "vocab_size": draw.randint(10, 500),
        "d_model": 8 * draw.randint(1, 9), "d_kv": draw.randint(1, 20), "d_ff": draw.randint(1, 99),
        "num_layers": draw.randint(1, 3), "num_decoder_layers": draw.choice([None, draw.randint(1, 5)]),
        "num_heads": draw.randint(1, 6), "relative_attention_num_buckets": draw.randint(2, 40),
        "feed_forward_proj": draw.choice(["relu", "gated-gelu"]),
    }  # fmt: skip


def _drawn_gpt_neo(draw: random.Random) -> dict[str, object]:
    heads, times = draw.randint(1, 6), draw.randint(1, 3)
    return {
        "model_type": "gpt_neo", "vocab_size": draw.randint(10, 500), "hidden_size": 8 * heads, "num_heads": heads,
        "num_layers": 2 * times, "attention_types": [[["global", "local"], times]],
        "intermediate_size": draw.choice([None, draw.randint(1, 99)]), "max_position_embeddings": draw.randint(8, 99),
        "window_size": 16, "tie_word_embeddings": draw.choice([True, False]), "bos_token_id": 1, "eos_token_id": 1,
    }  # fmt: skip


def _drawn_dbrx(draw: random.Random) -> dict[str, object]:
    kv = draw.choice([1, 2, 4])
    heads, experts = kv * draw.randint(1, 3), draw.randint(1, 6)
    ffn = {"ffn_hidden_size": draw.randint(1, 99), "moe_num_experts": experts, "moe_top_k": draw.randint(1, experts)}
    return {
        "model_type": "dbrx", "vocab_size": draw.randint(10, 500), "d_model": 8 * heads, "n_heads": heads,
        "n_layers": draw.randint(1, 4), "attn_config": {"kv_n_heads": kv, "rope_theta": 1e4}, "ffn_config": ffn,
    }  # fmt: skip


def _drawn_t5gemma(draw: random.Random) -> dict[str, object]:
    tied = draw.choice([True, False])
    parts = [drawn_other(draw, "gemma2") for _ in range(2)]
    for part in parts:
        del part["model_type"]
        part |= {"vocab_size": parts[0]["vocab_size"], "pad_token_id": 0, "tie_word_embeddings": tied}
    encoder, decoder = parts
    values = {"encoder": encoder, "decoder": decoder, "tie_word_embeddings": tied, "pad_token_id": 0}
    return {"model_type": "t5gemma", "vocab_size": encoder["vocab_size"], **values}


_NESTED: Mapping[str, Callable[[random.Random], dict[str, object]]] = {
    "gpt_neo": _drawn_gpt_neo,
    "dbrx": _drawn_dbrx,
    "t5gemma": _drawn_t5gemma,
}


def drawn_other(draw: random.Random, family: str) -> dict[str, object]:
    """Fields of a small model; some are left out, so that defaults count."""
    if family in _T5:
        return _drawn_t5(draw, family)
    if family in _NESTED:
        return _NESTED[family](draw)
    kv = draw.choice([1, 2, 4])
    heads, dim = kv * draw.choice([1, 2, 3]), 2 * draw.randint(1, 20)
    values: dict[str, object] = {
        "model_type": family,
        "hidden_size": heads * 8 * draw.randint(1, 9),
        "intermediate_size": draw.randint(1, 200),
        "num_hidden_layers": draw.randint(1, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": draw.randint(10, 500),
        "pad_token_id": None,
        "tie_word_embeddings": draw.choice([True, False]),
    }
    if family not in (*_LATENT, "mllama_text_model") and not family.startswith("qwen2"):
        values["head_dim"] = dim
    if family.startswith(("qwen3", "gemma")) or family in ("gemma2", "gemma3_text", "gpt_oss"):
        values["attention_bias"] = draw.choice([True, False])
    values |= _of_other(draw, family)
    return values


def _shared_layers(draw: random.Random) -> tuple[int, list[str]]:
    """How many layers share keys and values, and the types of all; each type is among those before."""
    types = ["sliding_attention", "full_attention"]
    own = types + draw.choices(types, k=draw.randint(0, 2))
    shared = draw.choices(types, k=draw.randint(0, 2))
    return len(shared) + 1, [*own, *shared, "full_attention"]


def _of_other(draw: random.Random, family: str) -> dict[str, object]:
    experts = draw.randint(2, 9)
    mixture: dict[str, object] = {"num_local_experts": experts, "num_experts_per_tok": draw.randint(1, experts)}
    match family:
        case "mllama_text_model":
            return {"cross_attention_layers": draw.sample(range(5), draw.randint(1, 3))}
        case "mimo_v2_flash":
            return {
                "num_attention_heads": 8, "num_key_value_heads": draw.choice([1, 2, 4]),
                "v_head_dim": draw.randint(1, 20), "n_routed_experts": 8, "num_experts_per_tok": 2,
                "moe_intermediate_size": draw.randint(1, 99), "attention_bias": draw.choice([True, False]),
            }  # fmt: skip
        case "gemma3n_text":
            shared, types = _shared_layers(draw)
            return {
                "num_hidden_layers": len(types), "layer_types": types, "num_kv_shared_layers": shared,
                "vocab_size_per_layer_input": draw.randint(10, 99), "laurel_rank": draw.randint(1, 9),
                "hidden_size_per_layer_input": draw.randint(1, 30), "altup_num_inputs": draw.randint(2, 5),
                "intermediate_size": [draw.randint(1, 99) for _ in types], "pad_token_id": 0,
            }  # fmt: skip
        case "gemma4_text" | "gemma4_unified_text":
            shared, types = _shared_layers(draw)
            alike, of_experts = draw.choice([True, False]), draw.choice([True, False])
            return mixture | {
                "num_hidden_layers": len(types), "layer_types": types, "num_kv_shared_layers": shared,
                "vocab_size_per_layer_input": draw.randint(10, 99), "global_head_dim": 2 * draw.randint(1, 20),
                "hidden_size_per_layer_input": draw.choice([0, draw.randint(1, 30)]) if family == "gemma4_text" else 0,
                "attention_k_eq_v": alike, "num_global_key_value_heads": draw.choice([None, 1]),
                "use_double_wide_mlp": draw.choice([True, False]), "pad_token_id": 0,
                "enable_moe_block": of_experts and family == "gemma4_text",
                "moe_intermediate_size": draw.randint(1, 99),
                "num_experts": experts, "top_k_experts": draw.randint(1, experts),
            }  # fmt: skip
        case "gpt_oss":
            return mixture
        case "qwen2_moe" | "qwen3_moe" | "qwen3_omni_moe_text" | "qwen3_vl_moe_text":
            return mixture | {
                "num_experts": experts, "shared_expert_intermediate_size": draw.randint(1, 99),
                "moe_intermediate_size": draw.randint(1, 99), "decoder_sparse_step": draw.randint(1, 3),
                "mlp_only_layers": draw.sample(range(5), draw.randint(0, 2)),
            }  # fmt: skip
        case "llama4_text":
            return mixture | {
                "intermediate_size_mlp": draw.randint(1, 99), "interleave_moe_layer_step": draw.randint(1, 3),
            }  # fmt: skip
        case name if name in _LATENT:
            rank, any_rank = draw.randint(1, 60), family in ("deepseek_v2", "deepseek_v3")
            return {
                "index_n_heads": draw.randint(1, 9), "index_head_dim": 2 * draw.randint(9, 30),
                "index_topk": draw.randint(1, 30), "index_topk_freq": draw.randint(1, 3),
                "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
                "moe_intermediate_size": draw.randint(1, 99), "n_shared_experts": draw.randint(1, 3),
                "first_k_dense_replace": draw.randint(0, 3),
                "q_lora_rank": draw.choice([None, rank] if any_rank else [rank]),
                "kv_lora_rank": draw.randint(1, 60), "qk_rope_head_dim": 2 * draw.randint(1, 9),
                "qk_nope_head_dim": draw.randint(1, 30), "v_head_dim": draw.randint(1, 30),
            }  # fmt: skip
    return {}


def built(asked: Sequence[object], script: str = BUILD) -> list[tuple[Any, Any]]:
    """Return what a script says of what transformers builds: parameters and types of layers.

    Raises:
        AssertionError: it builds one of them not.
    """
    lines = "\n".join(map(json.dumps, asked))
    done = subprocess.run([sys.executable, "-c", script], input=lines, capture_output=True, text=True, check=False)
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr[-2000:], asked[len(found)])
    return [(first, second) for first, second in found]


def variations(drawn: Callable[[random.Random, str], Drawn], family: str, count: int) -> list[Drawn]:
    """Return so many of a family, always the same."""
    draw = random.Random(f"45 {family}")
    return [drawn(draw, family) for _ in range(count)]


def main() -> int:
    """Write the file."""
    # Each family draws from its own seed: a new one leaves the others as they are.
    asked = [one for family in ROWS for one in variations(drawn, family, VARIATIONS)]
    found = zip(asked, built(asked), strict=True)
    rows = ({"values": one, "total": total, "types": types} for one, (total, types) in found)
    BUILT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    others = [one for family in OTHERS for one in variations(drawn_other, family, VARIATIONS)]
    both = zip(others, built(others), strict=True)
    totals = ({"values": one, "total": total, "types": types} for one, (total, types) in both)
    OTHERS_BUILT.write_text("".join(json.dumps(row) + "\n" for row in totals))
    asked = [one for family in SEEING for one in variations(drawn_seeing, family, VARIATIONS)]
    seeing = zip(asked, built(asked, BUILD_SEEING), strict=True)
    counts = ({"values": values, "total": total, "tokens": tokens} for values, (total, tokens) in seeing)
    SEEING_BUILT.write_text("".join(json.dumps(row) + "\n" for row in counts))
    outer = [{"model_type": name, **_INNER.get(name, {"text_config": {}})} for name in TEXT_TYPES]
    named = zip(outer, built(outer, BUILD_NESTED), strict=True)
    nested = ({"values": values, "text": text, "total": total} for values, (text, total) in named)
    NESTED_BUILT.write_text("".join(json.dumps(row) + "\n" for row in nested))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Random variations of configurations against the models that transformers builds of them, without weights."""

import importlib.util
import random

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.configuration.rows import ROWS
from dfcompile.language_models.graph.exported import NEEDED, exported_trace
from dfcompile.language_models.parameters import parameters_of
from dfcompile.language_models.steps.batch import Sequences
from tests.built_families import built
from tests.built_families import drawn as drawn_row

FAMILIES = (
    "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt_oss", "deepseek_v2", "deepseek_v3",
    "glm4_moe_lite", "youtu", "llama4_text",
)  # fmt: skip


_LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "youtu")


def drawn(draw: random.Random, family: str) -> dict[str, object]:
    """Fields of a small model; some are left out, so that defaults count."""
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
    if family not in (*_LATENT, "qwen2", "qwen2_moe"):
        values["head_dim"] = dim
    if family in ("qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt_oss"):
        values["attention_bias"] = draw.choice([True, False])
    values |= _of_family(draw, family)
    return values


def _of_family(draw: random.Random, family: str) -> dict[str, object]:
    experts = draw.randint(2, 9)
    mixture: dict[str, object] = {"num_local_experts": experts, "num_experts_per_tok": draw.randint(1, experts)}
    match family:
        case "gpt_oss":
            return mixture
        case "qwen2_moe" | "qwen3_moe":
            return mixture | {
                "num_experts": experts, "shared_expert_intermediate_size": draw.randint(1, 99),
                "moe_intermediate_size": draw.randint(1, 99), "decoder_sparse_step": draw.randint(1, 3),
                "mlp_only_layers": draw.sample(range(5), draw.randint(0, 2)),
            }  # fmt: skip
        case "llama4_text":
            return mixture | {
                "intermediate_size_mlp": draw.randint(1, 99), "interleave_moe_layer_step": draw.randint(1, 3),
            }  # fmt: skip
        case "deepseek_v2" | "deepseek_v3" | "glm4_moe_lite" | "youtu":
            return {
                "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
                "moe_intermediate_size": draw.randint(1, 99), "n_shared_experts": draw.randint(1, 3),
                "first_k_dense_replace": draw.randint(0, 3),
                "q_lora_rank": draw.choice([None, draw.randint(1, 60)] if "_v" in family else [draw.randint(1, 60)]),
                "kv_lora_rank": draw.randint(1, 60), "qk_rope_head_dim": 2 * draw.randint(1, 9),
                "qk_nope_head_dim": draw.randint(1, 30), "v_head_dim": draw.randint(1, 30),
            }  # fmt: skip
    return {}


def test_variations_have_the_parameters_of_built_models() -> None:
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match="--from-graph: needs"):
            exported_trace({"model_type": "llama"}, Sequences(0, 8), "llama")
        return
    draw = random.Random()
    asked = [drawn(draw, FAMILIES[number % len(FAMILIES)]) for number in range(200)]
    asked += [drawn_row(draw, name) for name in ROWS for _ in range(10)]

    for values, (total, _) in zip(asked, built(asked), strict=True):
        found = parameters_of(model_of(Configuration("drawn", "drawn", values)))
        assert found.total == total, values

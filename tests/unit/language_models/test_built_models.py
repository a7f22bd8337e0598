"""200 random variations of configurations against the models that transformers builds of them, without weights."""

import importlib.util
import json
import random
import subprocess
import sys

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.graph.exported import NEEDED, exported_trace
from dfcompile.language_models.parameters import parameters_of
from dfcompile.language_models.steps.batch import Sequences

FAMILIES = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt2", "gpt_oss",
    "deepseek_v3", "llama4_text",
)  # fmt: skip
BUILD = """
import json, sys, torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
for line in sys.stdin:
    values = json.loads(line)
    config = CONFIG_MAPPING[values.pop("model_type")](**values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    print(sum(one.numel() for one in model.parameters()), flush=True)
"""


def drawn(draw: random.Random, family: str) -> dict[str, object]:
    """Fields of a small model; some are left out, so that defaults count."""
    kv = draw.choice([1, 2, 4])
    heads, dim = kv * draw.choice([1, 2, 3]), 2 * draw.randint(1, 20)
    values: dict[str, object] = {
        "model_type": family,
        "hidden_size": heads * dim if family == "gpt2" else heads * 8 * draw.randint(1, 9),
        "intermediate_size": draw.randint(1, 200),
        "num_hidden_layers": draw.randint(1, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": draw.randint(10, 500),
        "pad_token_id": None,
        "tie_word_embeddings": draw.choice([True, False]),
    }
    if family not in ("gpt2", "deepseek_v3", "qwen2"):
        values["head_dim"] = dim
    if family in ("llama", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt_oss"):
        values["attention_bias"] = draw.choice([True, False])
    values |= _of_family(draw, family)
    return values


def _of_family(draw: random.Random, family: str) -> dict[str, object]:
    experts = draw.randint(2, 9)
    mixture: dict[str, object] = {"num_local_experts": experts, "num_experts_per_tok": draw.randint(1, experts)}
    match family:
        case "llama":
            return {"mlp_bias": draw.choice([True, False])}
        case "mixtral" | "gpt_oss":
            return mixture
        case "qwen3_moe":
            return mixture | {
                "moe_intermediate_size": draw.randint(1, 99), "decoder_sparse_step": draw.randint(1, 3),
                "mlp_only_layers": draw.sample(range(5), draw.randint(0, 2)),
            }  # fmt: skip
        case "llama4_text":
            return mixture | {
                "intermediate_size_mlp": draw.randint(1, 99), "interleave_moe_layer_step": draw.randint(1, 3),
            }  # fmt: skip
        case "gpt2":
            return {"n_inner": draw.choice([None, draw.randint(1, 99)]), "n_positions": draw.randint(8, 99)}
        case "deepseek_v3":
            return {
                "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
                "moe_intermediate_size": draw.randint(1, 99), "n_shared_experts": draw.randint(1, 3),
                "first_k_dense_replace": draw.randint(0, 3), "q_lora_rank": draw.choice([None, draw.randint(1, 60)]),
                "kv_lora_rank": draw.randint(1, 60), "qk_rope_head_dim": 2 * draw.randint(1, 9),
                "qk_nope_head_dim": draw.randint(1, 30), "v_head_dim": draw.randint(1, 30),
            }  # fmt: skip
    return {}


def test_200_variations_have_the_parameters_of_built_models() -> None:
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match="--from-graph: needs"):
            exported_trace({"model_type": "llama"}, Sequences(0, 8), "llama")
        return
    draw = random.Random()
    asked = [drawn(draw, FAMILIES[number % len(FAMILIES)]) for number in range(200)]
    lines = "\n".join(map(json.dumps, asked))
    done = subprocess.run([sys.executable, "-c", BUILD], input=lines, capture_output=True, text=True, check=False)

    assert done.returncode == 0, (done.stderr[-2000:], asked[len(done.stdout.split())])
    for values, built in zip(asked, done.stdout.split(), strict=True):
        found = parameters_of(model_of(Configuration("drawn", "drawn", values)))
        assert found.total == int(built), values

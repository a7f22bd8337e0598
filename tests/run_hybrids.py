"""Small models with recurrent mixers, run by `transformers` without weights: what they keep, and what they compute.

``python -m tests.run_hybrids`` writes `tests/data/llm/run_hybrids.jsonl` anew: of each model a prompt, then one further
token, on the meta device. `held` is the bytes of keys and values that the second step has and of states, of all layers,
`flops` what PyTorch's counter counts of both steps, without rotations of positions. Kernels of Mamba and others are not
installed there, so that it counts what `transformers` computes in their place.
"""

import random
import sys
from pathlib import Path

from tests.built_hybrids import drawn_hybrid
from tests.run_families import write_runs

RUN = Path(__file__).parent / "data" / "llm" / "run_hybrids.jsonl"
FAMILIES = (
    "bailing_hybrid", "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear", "lara_mini",
    "lfm2", "lfm2_moe", "lfm3", "mamba", "mamba2", "minimax", "nemotron_h", "olmo_hybrid", "qwen3_5_moe_text",
    "qwen3_5_text", "qwen3_next", "recurrent_gemma",
)  # fmt: skip
VARIATIONS = 3
CHUNK = 64  # a prompt has whole ones, of every family: transformers fills the last one up
# A cache of these needs a layer with attention.
_ATTENDING: dict[str, dict[str, object]] = {
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba"], "num_hidden_layers": 3},
    "jamba": {"num_hidden_layers": 4},
    "kimi_linear": {
        "num_hidden_layers": 3,
        "linear_attn_config": {"head_dim": 4, "num_heads": 2, "full_attn_layers": [2], "kda_layers": [1, 3]},
    },
    "lara_mini": {"layer_types": None, "num_hidden_layers": 5},
    "lfm2": {"full_attn_idxs": [1]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3},
    "lfm3": {"layer_types": ["conv", "full_attention", "conv", "sliding_attention"], "num_hidden_layers": 4},
    "nemotron_h": {
        "layers_block_type": None,
        "hybrid_override_pattern": "M*-EM",
        "mlp_bias": False,
        "moe_latent_size": 6,
    },
    "qwen3_5_moe_text": {"layer_types": None, "num_hidden_layers": 4},
    "qwen3_5_text": {"layer_types": None, "num_hidden_layers": 4},
    "qwen3_next": {"layer_types": None, "num_hidden_layers": 4},
    "recurrent_gemma": {"num_hidden_layers": 4},
}
SCRIPT = """
import json, sys, torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


def watched(layer, held):
    update = layer.update

    def updated(*given, **named):
        found = update(*given, **named)
        held.extend(found[:2])
        return found

    layer.update = updated


def states_of(model, cache):
    for module in model.modules():  # of RecurrentGemma, which keeps its states there
        yield from (getattr(module, name, None) for name in ("conv1d_state", "recurrent_states"))
    for layer in cache.layers:
        for name in ("conv_states", "recurrent_states"):
            states = getattr(layer, name, ())
            yield from states.values() if isinstance(states, dict) else states
    yield from (state for state in getattr(cache, "linear_cache", ()) if len(state))


for line in sys.stdin:
    values, prompt, count = json.loads(line)
    config = CONFIG_MAPPING[values.pop("model_type")](**values, attn_implementation="eager")
    held, flops = [], []
    given = {"cache": DynamicCache(config=config)} if config.model_type == "recurrent_gemma" else {}
    with torch.device("meta"), torch.no_grad():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, experts_implementation="batched_mm")
        model.eval()
        for length in (prompt, 1):
            with FlopCounterMode(display=False) as counter:
                done = model(torch.zeros((count, length), dtype=torch.long), use_cache=True, **given)
            cache = next(one[name] for one in (done, given) for name in ("past_key_values", "cache") if name in one)
            given = {"cache": cache}
            for layer in (layer for layer in cache.layers if length > 1 and hasattr(layer, "update")):
                watched(layer, held)
            modules = counter.get_flop_counts().items()
            rotated = sum(sum(one.values()) for name, one in modules if name.endswith("rotary_emb"))
            flops.append(counter.get_total_flops() - rotated)
    held.extend(state for state in states_of(model, cache) if state is not None)
    print(json.dumps([sum(one.nbytes for one in held), flops]), flush=True)
"""


def main() -> int:
    """Write the file."""
    draw = random.Random(45)
    asked = [
        (drawn_hybrid(draw, family) | _ATTENDING.get(family, {}), CHUNK * draw.randint(1, 3), draw.randint(1, 4))
        for family in FAMILIES
        for _ in range(VARIATIONS)
    ]
    write_runs(RUN, SCRIPT, asked, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())

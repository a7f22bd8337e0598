"""Small configurations of the table of families, and what `transformers` builds of them.

``python -m tests.built_families`` writes `tests/data/llm/built_families.jsonl` anew: `VARIATIONS` of each row, with the
parameters of the model that `transformers` builds on the meta device, and the kind of attention of each layer; and
`built_others.jsonl`, the same of the types that are no rows.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from dfcompile.language_models.configuration.composed import Family, Windows
from dfcompile.language_models.configuration.rows import ROWS

BUILT = Path(__file__).parent / "data" / "llm" / "built_families.jsonl"
OTHERS_BUILT = BUILT.with_name("built_others.jsonl")
VARIATIONS = 10
BUILD = """
import json, sys, torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
for line in sys.stdin:
    values = json.loads(line)
    config = CONFIG_MAPPING[values.pop("model_type")](**values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    types = getattr(config, "layer_types", None)
    print(json.dumps([sum(one.numel() for one in model.parameters()), types]), flush=True)
"""
# What classes check, or derive of what is drawn here.
_OF_CLASS: Mapping[str, Mapping[str, object]] = {
    "codegen": {"rotary_dim": 4},
    "falcon": {"alibi": False, "new_decoder_architecture": False},
    "gptj": {"rotary_dim": 4},
    **{name: {"head_dim": 10} for name in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral")},
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
    if not row.widens:
        values[row.width[0]] = width
    if row.windows is not None:
        values["sliding_window"] = draw.choice([None, 16]) if row.windows == Windows() else 16
    values |= _of_experts(draw, row)
    for said in (*_said(row), "tie_word_embeddings"):
        values[said] = draw.choice([True, False])
    values |= {name: needed for name, needed in row.refused.items() if name != "expansion_ratio"}
    values |= _OF_CLASS.get(family, {})
    if family == "opt":
        values["word_embed_proj_dim"] = hidden
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
)  # fmt: skip
_LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "youtu")


def drawn_other(draw: random.Random, family: str) -> dict[str, object]:
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
    values |= _of_other(draw, family)
    return values


def _of_other(draw: random.Random, family: str) -> dict[str, object]:
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


def built(asked: list[dict[str, object]]) -> list[tuple[int, list[str] | None]]:
    """Return parameters and types of layers of what transformers builds.

    Raises:
        AssertionError: it builds one of them not.
    """
    lines = "\n".join(map(json.dumps, asked))
    done = subprocess.run([sys.executable, "-c", BUILD], input=lines, capture_output=True, text=True, check=False)
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr[-2000:], asked[len(found)])
    return [(total, types) for total, types in found]


def main() -> int:
    """Write the file."""
    draw = random.Random(45)
    asked = [drawn(draw, family) for family in ROWS for _ in range(VARIATIONS)]
    found = zip(asked, built(asked), strict=True)
    rows = ({"values": one, "total": total, "types": types} for one, (total, types) in found)
    BUILT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    others = [drawn_other(draw, family) for family in OTHERS for _ in range(VARIATIONS)]
    totals = ({"values": one, "total": total} for one, (total, _) in zip(others, built(others), strict=True))
    OTHERS_BUILT.write_text("".join(json.dumps(row) + "\n" for row in totals))
    return 0


if __name__ == "__main__":
    sys.exit(main())

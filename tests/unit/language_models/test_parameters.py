"""Parameters and caches: those of models that were built without weights, and sums written another way."""

import csv
import json
import random
from pathlib import Path

import pytest

from dfcompile.language_models.configuration.reading import Configuration, model_of, read_model
from dfcompile.language_models.footprint import kv_elements_per_token, parameters_of
from dfcompile.language_models.model import Model

DATA = Path(__file__).parents[2] / "data" / "llm"
NAMES = {theirs: ours for ours, theirs in json.loads((DATA / "names.json").read_text()).items()}
ROWS = list(csv.DictReader((DATA / "param_kv_reference.csv").read_text().splitlines()))


def kv_elements_of_sequence(model: Model, tokens: int) -> int:
    """Elements in the caches of all layers after so many tokens; windows keep no more than they see."""
    return sum(attention.kv_elements * attention.reach.kept(tokens) for attention in model.attentions)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["model"]))
def test_counts_are_those_of_built_models(row: dict[str, str]) -> None:
    model = read_model(NAMES[row["model"]])
    found = parameters_of(model)

    assert {
        "total": found.total,
        "active": found.active,
        "active_without_input_embedding": found.active_without_lookup,
        "attn": found.attention,
        "ffn": found.mlp,
        "norm": found.norms,
        "embed": found.embedding,
        "lm_head": found.head,
        "kv_bytes_per_token_bf16": 2 * kv_elements_per_token(model),
        "kv_bytes_seq_131072_bf16": 2 * kv_elements_of_sequence(model, 131_072),
        "windowed_layers": sum(attention.reach.extent > 0 for attention in model.attentions),
        "layers": len(model.layers),
    } == {key: int(row[key]) for key in row if key not in ("model", "macs_decode_token_ctx4096")}


def shapes_llama(c: dict[str, int]) -> list[tuple[int, ...]]:
    """Every tensor of a Llama, one by one."""
    q, kv = c["heads"] * c["dim"], c["kv"] * c["dim"]
    layer = [(q, c["h"]), (kv, c["h"]), (kv, c["h"]), (c["h"], q), (c["i"], c["h"]), (c["i"], c["h"]), (c["h"], c["i"])]
    return [(c["v"], c["h"]), (c["v"], c["h"]), (c["h"],), *[*layer, (c["h"],), (c["h"],)] * c["layers"]]


def shapes_moe(c: dict[str, int]) -> list[tuple[int, ...]]:
    """Every tensor of a Qwen3-MoE, one by one."""
    q, kv = c["heads"] * c["dim"], c["kv"] * c["dim"]
    expert = [(c["i"], c["h"]), (c["i"], c["h"]), (c["h"], c["i"])]
    layer = [(q, c["h"]), (kv, c["h"]), (kv, c["h"]), (c["h"], q), (c["e"], c["h"]), (c["dim"],), (c["dim"],)]
    layer += expert * c["e"] + [(c["h"],), (c["h"],)]
    return [(c["v"], c["h"]), (c["v"], c["h"]), (c["h"],), *layer * c["layers"]]


def test_random_variations_are_the_sums_of_their_tensors() -> None:
    draw = random.Random()
    for _ in range(200):
        kv = draw.choice([1, 2, 3, 8])
        c = {"h": draw.randint(1, 999), "i": draw.randint(1, 999), "v": draw.randint(2, 999), "kv": kv,
             "heads": kv * draw.randint(1, 9), "dim": draw.randint(1, 200), "layers": draw.randint(1, 4),
             "e": draw.randint(2, 9)}  # fmt: skip
        fields = {
            "hidden_size": c["h"], "vocab_size": c["v"], "num_hidden_layers": c["layers"], "head_dim": c["dim"],
            "num_attention_heads": c["heads"], "num_key_value_heads": kv, "tie_word_embeddings": False,
        }  # fmt: skip
        llama = {**fields, "model_type": "llama", "intermediate_size": c["i"]}
        moe = {
            **fields, "model_type": "qwen3_moe", "moe_intermediate_size": c["i"], "num_experts": c["e"],
            "num_experts_per_tok": draw.randint(1, c["e"]),
        }  # fmt: skip
        for made, shapes in ((llama, shapes_llama(c)), (moe, shapes_moe(c))):
            model = model_of(Configuration("drawn", "drawn", made))

            assert parameters_of(model).total == sum(_product(shape) for shape in shapes), made
            assert kv_elements_per_token(model) == 2 * kv * c["dim"] * c["layers"]


def _product(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_trap_n9_both_conventions_of_active_parameters() -> None:
    small = parameters_of(read_model("gpt-oss-20b"))

    assert (small.active, small.active_without_lookup) == (4_187_440_704, 3_608_307_264)
    assert parameters_of(read_model("mixtral-8x7b")).active == 12_879_925_248


def test_trap_t23_totals_are_exact_beyond_2_to_the_53() -> None:
    model = read_model("llama-3.1-405b")

    assert kv_elements_of_sequence(model, 10**12 + 1) == (10**12 + 1) * 126 * 2048

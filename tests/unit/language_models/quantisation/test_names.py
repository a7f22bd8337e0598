"""Which modules the entries of a list are about."""

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.quantisation.keys import Place
from dfcompile.language_models.quantisation.stated import modules_of, names_of, representative_experts
from tests.unit.language_models.quantisation.examples import EXPERTS, LATENT, LLAMA, SMALL, model

PLACE = Place("x", "quantization_config.ignore")


def named(entries: list[str], values: dict[str, object] = LLAMA) -> list[str]:
    names = names_of(entries, PLACE)
    return [module.names[0] for module in modules_of(model(values), range(4)) if names.has(module)]


OF_SECOND = [f"model.layers.1.mlp.{name}_proj" for name in ("gate", "up", "down")]


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("lm_head", ["lm_head"]),
        ("language_model.lm_head", ["lm_head"]),
        ("lm_head*", ["lm_head"]),
        ("lm_head.*", ["lm_head"]),
        ("Embedding", ["model.embed_tokens"]),
        ("model.layers.1.mlp", OF_SECOND),
        ("layers.1.mlp", OF_SECOND),
        ("layers.1.mlp.*", OF_SECOND),
        ("*.1.mlp*", OF_SECOND),
        ("model.layers.1.mlp*", OF_SECOND),
        (r"re:.*layers\.1\.mlp", OF_SECOND),
        (r"re:model\.layers\.1\.mlp\.(gate|up|down)_proj$", OF_SECOND),
        (r"model\.layers\.1\.mlp", OF_SECOND),
        ("model.language_model.layers.1.mlp", OF_SECOND),
        ("re:language_model.model.layers.1.mlp.*", OF_SECOND),
        ("re:mlp", []),
        ("mlp_", []),
        ("1", [*(f"model.layers.1.self_attn.{name}_proj" for name in "qkvo"), *OF_SECOND]),
        ("vision_tower", []),
        ("model.layers.11.mlp", []),
    ],
)
def test_entries(entry: str, found: list[str]) -> None:
    assert named([entry]) == found


def test_modules_are_called_as_families_call_them() -> None:
    assert named(["self_attn"], LATENT)[:5] == [
        f"model.layers.0.self_attn.{name}"
        for name in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
    ]
    assert named(["shared_experts", "mlp.gate"], LATENT)[0] == "model.layers.1.mlp.gate"
    mixtral = {**EXPERTS, "model_type": "mixtral", "num_local_experts": 4, "sliding_window": None}
    assert named(["block_sparse_moe.gate", "mlp.experts.3.down_proj"], mixtral)[:2] == [
        "model.layers.0.block_sparse_moe.gate",
        "model.layers.0.block_sparse_moe.experts.3.w2",
    ]
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 160, "n_positions": 32,
            "tie_word_embeddings": False}  # fmt: skip
    assert named(["h.1.attn", "lm_head"], gpt2) == [
        "transformer.h.1.attn.c_attn",
        "transformer.h.1.attn.c_proj",
        "lm_head",
    ]
    llama4 = {**EXPERTS, "model_type": "llama4_text", "num_local_experts": 4, "intermediate_size_mlp": 96,
              "interleave_moe_layer_step": 1, "attention_chunk_size": None, "no_rope_layer_interval": 4,
              "attention_bias": False}  # fmt: skip
    assert len(named(["feed_forward.experts.gate_up_proj"], llama4)) == 3 * 4 * 2
    gpt_oss = {**EXPERTS, "model_type": "gpt_oss", "num_local_experts": 4, "attention_bias": True}
    assert named(["mlp.router"], gpt_oss) == [f"model.layers.{layer}.mlp.router" for layer in range(3)]


def test_a_tied_head_is_the_embedding() -> None:
    assert named(["lm_head"], {**LLAMA, **SMALL, "tie_word_embeddings": True}) == []


@pytest.mark.parametrize(
    ("entries", "experts"),
    [
        (["lm_head", "self_attn"], {0}),
        (["model.layers.2.mlp.experts.7.up_proj"], {0, 2, 7}),
        ([f"mlp.experts.{expert}" for expert in (0, 2, 3)], {0, 1, 2, 3}),
        ([f"mlp.experts.{expert}" for expert in range(9)], set(range(9))),
        (["re:.*self_attn.*", "*mlp*", r"re:.*mlp\.gate$"], {0}),
        (["re:.*mlp.gate$"], {0}),
        (["re:.*experts...gate"], set(range(9))),
        (["model.layers.61*", r"re:model\.layers\.\d+\.self_attn.*", r"re:.*layers\.[0-9]+\.mlp\.gate"], {0}),
        ([r"re:.*layers\.\d+\.mlp\.experts\.\d\..*"], set(range(9))),
        ([r"re:.*experts\.[0-5]\."], set(range(9))),
        (["*experts.3*"], set(range(9))),
    ],
)
def test_experts_that_lists_may_tell_apart(entries: list[str], experts: set[int]) -> None:
    assert representative_experts([names_of(entries, PLACE)], 9) == experts


def test_an_expert_that_no_list_names_is_among_them() -> None:
    lists = [names_of([f"mlp.experts.{expert}"], PLACE) for expert in (0, 1)]

    assert representative_experts(lists, 4) == {0, 1, 2}


@pytest.mark.parametrize(
    "entry", ["re:(a+)+$", "re:.*.*.*.*.*.*.*x", "re:(", "re:(?P<a>.)(?P<a>.)", "*a*b*c*d*e*f*g*h"]
)
def test_patterns_that_are_broken_or_slow_are_refused(entry: str) -> None:
    with pytest.raises(UserError, match=r"x: key 'quantization_config.ignore': found "):
        names_of([entry], PLACE)

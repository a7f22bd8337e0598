"""The table of families against what transformers builds of small configurations of each row."""

import json
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.families import FAMILIES
from dfcompile.language_models.configuration.reading import Configuration, class_defaults, model_of
from dfcompile.language_models.configuration.rows import ROWS
from dfcompile.language_models.footprint import parameters_of
from dfcompile.language_models.model import Model
from dfcompile.language_models.quantisation.precision import precision_of
from tests.built_families import BUILT, VARIATIONS

CASES = [json.loads(line) for line in BUILT.read_text().splitlines()]


def read(values: dict[str, object]) -> Model:
    return model_of(Configuration("drawn", "drawn", values))


def test_152_types_are_read_and_each_row_was_built() -> None:
    assert len(FAMILIES) == 152
    assert set(class_defaults()) == set(FAMILIES)
    assert sorted(case["values"]["model_type"] for case in CASES) == sorted(list(ROWS) * VARIATIONS)


def test_parameters_are_those_of_built_models() -> None:
    for case in CASES:
        assert parameters_of(read(case["values"])).total == case["total"], case["values"]


def test_windows_are_those_of_the_classes() -> None:
    for case in CASES:
        types, window = case["types"], case["values"].get("sliding_window")
        attentions = [layer.attention for layer in read(case["values"]).layers if layer.attention is not None]
        expected = ["sliding_attention" if window else "full_attention"] * len(attentions) if types is None else types
        extents = [window if one == "sliding_attention" else 0 for one in expected]
        assert [attention.reach.extent for attention in attentions] == extents, case["values"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("attn_config", {"model_type": "dbrx", "attn_config": 5}),
        ("n_heads", {"model_type": "dbrx", "n_heads": 5}),
        ("moe_top_k", {"model_type": "dbrx", "ffn_config": {"moe_top_k": 9}}),
        ("attention_types", {"model_type": "gpt_neo", "num_layers": 2, "attention_types": [[["global", "x"], 1]]}),
        ("attention_types", {"model_type": "gpt_neo", "num_layers": 2, "attention_types": [["global"]]}),
        ("attention_types", {"model_type": "gpt_neo", "num_layers": 2, "attention_types": [[["global"], 1]]}),
        ("num_key_value_heads", {"model_type": "mimo_v2_flash", "num_attention_heads": 8, "num_key_value_heads": 8}),
        ("num_key_value_heads", {"model_type": "mllama", "num_attention_heads": 8, "num_key_value_heads": 3}),
        ("top_k_experts", {"model_type": "gemma4", "enable_moe_block": True, "num_experts": 2, "top_k_experts": 3}),
        ("decoder", {"model_type": "t5gemma", "decoder": 5}),
        ("expansion_ratio", {"model_type": "mpt", "expansion_ratio": 3}),
        ("enable_bias", {"model_type": "opt", "enable_bias": False}),
        ("qk_layernorm", {"model_type": "stablelm", "qk_layernorm": True}),
        ("mlp_bias", {"model_type": "hy_v3", "mlp_bias": True}),
        ("mlp_layer_types", {"model_type": "exaone_moe", "num_hidden_layers": 1, "mlp_layer_types": ["x"]}),
    ],
)
def test_a_part_that_is_not_modelled_is_refused_by_its_name(name: str, values: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"drawn: key '{name}': found"):
        read(values)


def test_quantised_weights_of_modules_with_other_names_are_refused() -> None:
    values = {"model_type": "phi3", "num_hidden_layers": 1, "quantization_config": {"quant_method": "fp8"}}

    with pytest.raises(UserError, match="quantised weights: found 'phi3', whose modules are not known by name"):
        precision_of(values, read(values), "drawn")


def test_the_documents_list_every_type() -> None:
    page, options = (
        (Path(__file__).parents[4] / "docs" / f"{name}.md").read_text() for name in ("llm-explained", "llm")
    )

    assert [name for name in FAMILIES if f"`{name}`" not in page] == []
    assert f"Families: {len(FAMILIES)} types" in options


def test_opt_350m_has_the_parameters_of_its_checkpoint() -> None:
    model = read(
        {
            "model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "vocab_size": 50272,
            "num_attention_heads": 16, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        }
    )  # fmt: skip

    assert parameters_of(model).total == 331_196_416

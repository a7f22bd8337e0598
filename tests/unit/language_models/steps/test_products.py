"""Products beside attention and MLP, tables by layer, and layers that share keys and values: Gemma 3n and Gemma 4."""

import json
from pathlib import Path

import pytest

from dfcompile.api.language_models import llm, mapped_steps
from dfcompile.api.plans import training_run
from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import layer_kv_bytes, layer_weight_bytes, parameters_of, weight_bytes
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.parallel.degrees import Degrees, share_of_layer
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, StepChoices
from dfcompile.language_models.steps.step import ends_kernels, layer_kernels
from dfcompile.options.language_models import LanguageOptions
from tests.built_families import OTHERS_BUILT

BF16 = uniform(FORMATS["bf16"])
FIELDS: dict[str, object] = {
    "model_type": "gemma3n_text", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 2, "altup_num_inputs": 3,
    "laurel_rank": 5, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 90,
}  # fmt: skip
MODEL = model_of(Configuration("tiny", "tiny", FIELDS))
STEP = Batch("decode", (Sequences(19, 1, 3),))


def kernels(layer: int) -> dict[str, Kernel]:
    return {one.name: one for one in layer_kernels(MODEL.layers[layer], 64, STEP, BF16, StepChoices())}


def test_layers_that_share_keys_and_values_read_what_an_earlier_one_keeps() -> None:
    own, shared = kernels(1), kernels(3)

    assert [layer_kv_bytes(layer, STEP, BF16) for layer in MODEL.layers] == [2 * 3 * 8 * 64, 2 * 3 * 20 * 64, 0, 0]
    assert own["attention_decode"].kv_read_bytes == shared["attention_decode"].kv_read_bytes == 2 * 3 * 20 * 64
    assert (own["qkv_proj"].n, shared["q_proj"].n) == (128, 64)
    assert "kv_store" in own
    assert "kv_store" not in shared


def test_products_beside_are_counted_by_hand() -> None:
    made = kernels(0)

    assert made["altup_predict"].macs == 3 * 64 * 3 * 3
    assert made["altup_predict"].weight_bytes == 0
    assert made["altup_router"].weight_bytes == made["altup_router_again"].weight_bytes == 2 * 64 * 3
    assert made["laurel_left"].macs == made["laurel_right"].macs == 3 * 64 * 5
    assert made["layer_input_gate"].macs == 3 * 64 * 6
    first, last = ends_kernels(MODEL, STEP, BF16, 100)
    assert first[0].weight_bytes == 2 * 3 * (64 + 4 * 6)
    assert [one.macs for one in first[1:]] == [3 * 64 * 24, 3 * 64 * 64, 3 * 64 * 64]
    assert [one.name for one in last] == ["altup_unembed_1", "altup_unembed_2", "lm_head"]


def test_tensor_groups_have_products_beside_whole() -> None:
    layer = MODEL.layers[0]
    share = share_of_layer(layer, Degrees(tensor=2))
    whole, part = (layer_weight_bytes(one, 64, BF16) for one in (layer, share))

    assert share.products == layer.products
    assert whole - part == 64 * (128 + 64) + 3 * 64 * 96  # half of all matrices of attention and MLP, of 2 bytes


def test_weights_of_recorded_variations_have_two_bytes_each() -> None:
    for line in OTHERS_BUILT.read_text().splitlines():
        case = json.loads(line)
        model = model_of(Configuration("drawn", "drawn", case["values"]))
        assert weight_bytes(model, BF16) == 2 * case["total"] == 2 * parameters_of(model).total, case["values"]


def test_what_is_not_counted_of_such_layers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FIELDS))
    with pytest.raises(UserError, match="--map: found a layer with altup_router, "):
        mapped_steps(llm(str(path), "h100-sxm", decode=("20",)).study)
    with pytest.raises(UserError, match="--train: found 'gemma3n_text', which has more before and after its layers"):
        training_run(LanguageOptions(config=str(path), system="h100-sxm", train="1x16"))
    for changed, message in (
        ({"num_kv_shared_layers": 4}, "'num_kv_shared_layers': found 4, of which some have no layer before"),
        ({"intermediate_size": [8]}, "'intermediate_size': found 1 entries against 4 layers"),
        ({"intermediate_size": [8, 8, "x", 8]}, "'intermediate_size': found "),
        ({"model_type": "gemma4_text", "use_bidirectional_attention": "all"}, "found 'all', which is not modelled"),
        ({"model_type": "gemma4_text", "num_key_value_heads": 3}, "'num_key_value_heads': found 3 heads"),
    ):
        with pytest.raises(UserError, match=message):
            model_of(Configuration("tiny", "tiny", FIELDS | changed))

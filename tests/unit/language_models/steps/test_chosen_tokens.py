"""Attention to tokens that an indexer chooses (DeepSeek V3.2, GLM 5): kernels and caches by hand."""

import json
from pathlib import Path

import pytest

from dfcompile.api.language_models import llm, mapped_steps
from dfcompile.api.plans import training_run
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import layer_kv_bytes, parameters_of
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.model import LatentAttention, Model
from dfcompile.language_models.parallel.degrees import Degrees, share_of_layer
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, Latent, StepChoices
from dfcompile.language_models.steps.step import layer_kernels
from dfcompile.options.language_models import LanguageOptions

BF16 = uniform(FORMATS["bf16"])
DECODE = Batch("decode", (Sequences(4999, 1, 3),))


def model(**changed: object) -> Model:
    return model_of(Configuration("v3.2", "v3.2", {"model_type": "deepseek_v32", **changed}))


V32 = model()


def kernels(batch: Batch, choices: StepChoices | None = None, layer: int = 0) -> dict[str, Kernel]:
    made = layer_kernels(V32.layers[layer], 7168, batch, BF16, choices or StepChoices())
    return {one.name: one for one in made}


def test_an_indexer_adds_its_matrices_and_a_key_per_token() -> None:
    dense = model_of(Configuration("v3", "v3", {"model_type": "deepseek_v3"}))
    per_layer = 1536 * 64 * 128 + 7168 * 128 + 7168 * 64 + 2 * 128

    assert parameters_of(V32).total == parameters_of(dense).total + 61 * per_layer
    assert layer_kv_bytes(V32.layers[0], DECODE, BF16) == 2 * 3 * 5000 * (576 + 128)


def test_a_decode_scores_all_tokens_and_attends_to_the_chosen() -> None:
    made = kernels(DECODE)

    assert made["index_scores"].macs == 3 * 64 * 129 * 5000
    assert made["index_scores"].kv_read_bytes == 2 * 3 * 5000 * 128
    assert made["index_choice"].vector_elements == 3 * 5000
    assert made["attention_decode"].macs == 3 * 128 * (576 + 512) * 2048
    assert made["attention_decode"].kv_read_bytes == 2 * 3 * 2048 * 576
    assert (made["kv_a_proj"].n, made["kv_store"].kv_write_bytes) == (576, 2 * 3 * 704)
    assert "kv_b_proj" not in made


@pytest.mark.parametrize(("past", "new"), [(0, 3000), (1000, 2000), (4000, 100)])
def test_a_prompt_attends_to_as_many_as_are_chosen(past: int, new: int) -> None:
    made = kernels(Batch("prompt", (Sequences(past, new, 2),)))

    seen = [at + 1 for at in range(past, past + new)]
    assert made["attention_prefill"].macs == 2 * 128 * (576 + 512) * sum(min(one, 2048) for one in seen)
    assert made["attention_prefill"].kv_read_bytes == 2 * 2 * (past + new) * 576
    assert made["index_scores"].macs == 2 * 64 * 129 * sum(seen)


def test_short_prompts_and_naive_ones_attend_to_all() -> None:
    short = kernels(Batch("short", (Sequences(0, 2048),)))
    naive = kernels(Batch("long", (Sequences(0, 3000),)), StepChoices(latent=Latent.NAIVE))

    assert short["attention_prefill"].macs == 128 * (192 + 128) * 2048 * 2049 // 2
    assert naive["attention_prefill"].macs == 128 * (192 + 128) * 3000 * 3001 // 2


def test_scores_in_memory_are_those_of_chosen_tokens() -> None:
    made = kernels(DECODE, StepChoices(flash=False))

    assert made["attention_decode_scores"].act_out_bytes == 2 * 3 * 128 * 2048
    assert made["attention_decode_values"].kv_read_bytes == 2 * 3 * 2048 * 512


def test_layers_that_share_a_choice_have_no_indexer() -> None:
    glm = model(model_type="glm_moe_dsa", index_topk_freq=3, num_hidden_layers=6)
    attentions = [one for one in glm.attentions if isinstance(one, LatentAttention)]

    assert [one.indexer is not None for one in attentions] == [True, True, False, False, True, False]
    assert {one.chosen for one in attentions} == {2048}
    made = layer_kernels(glm.layers[2], 6144, DECODE, BF16, StepChoices())
    assert not any(one.name.startswith("index") for one in made)
    assert layer_kv_bytes(glm.layers[2], DECODE, BF16) == 2 * 3 * 5000 * 576
    listed = model(model_type="glm_moe_dsa", indexer_types=["full", "shared"], num_hidden_layers=2)
    assert [kind.name for kind in listed.kinds] == [
        "latent top-2048 attention, dense", "latent shared top-2048 attention, dense",
    ]  # fmt: skip


def test_tensor_groups_have_indexers_whole_and_sequences_stay_together() -> None:
    share = share_of_layer(V32.layers[0], Degrees(tensor=8))
    made = {one.name: one.macs for one in layer_kernels(share, 7168, DECODE, BF16, StepChoices())}

    assert made["index_scores"] == kernels(DECODE)["index_scores"].macs
    assert 8 * made["attention_decode"] == kernels(DECODE)["attention_decode"].macs
    with pytest.raises(InfeasibleError, match="2 chips that share a sequence against 1, where layers attend to chosen"):
        share_of_layer(V32.layers[0], Degrees(sequence=2))


def test_what_is_not_counted_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "deepseek_v32", "num_hidden_layers": 4, "n_routed_experts": 8}))
    with pytest.raises(UserError, match="--map: found a layer with attention to chosen tokens"):
        mapped_steps(llm(str(path), "h100-sxm", decode=("20",)).study)
    with pytest.raises(UserError, match="--train: found 'deepseek_v32', whose layers attend to chosen tokens"):
        training_run(LanguageOptions(config=str(path), system="h100-sxm", train="1x16"))
    for changed, message in (
        ({"index_topk_pattern": "FS"}, "'index_topk_pattern': found 'FS', which is not modelled"),
        ({"indexer_types": ["shared"]}, "'indexer_types': found 'shared' first of"),
    ):
        with pytest.raises(UserError, match=message):
            model(model_type="glm_moe_dsa", num_hidden_layers=1, **changed)


def test_quantised_weights_are_read_with_those_of_the_indexer(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    quantised = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    path.write_text(json.dumps({"model_type": "deepseek_v32", "quantization_config": quantised}))
    study = llm(str(path), "h100-sxm", decode=("20",), allow_oversubscribed=True).study

    assert study.precision.attention.name == "fp8"
    assert 671e9 < study.weight_bytes < 680e9

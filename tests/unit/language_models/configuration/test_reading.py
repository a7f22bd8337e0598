"""Configurations: found, read, filled in, or refused in one line."""

import json
import os
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.families import FAMILIES
from dfcompile.language_models.configuration.reading import (
    TEXT_TYPES,
    Configuration,
    class_defaults,
    model_of,
    read_configuration,
    read_model,
    shipped_names,
    text_part,
)
from dfcompile.language_models.configuration.rows import ROWS
from dfcompile.language_models.footprint import kv_elements_per_token, parameters_of, weight_bytes
from dfcompile.language_models.model import Mask
from dfcompile.language_models.quantisation.precision import precision_of
from dfcompile.language_models.steps.batch import prefill_batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.study import Request, study_of
from dfcompile.options.language_models import LanguageOptions
from tests.built_families import NESTED_BUILT, OTHERS, OTHERS_BUILT, SEEING, SEEING_BUILT, VARIATIONS
from tests.built_hybrids import HYBRID

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def written(folder: Path, **changed: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({**TINY, **changed}))
    return str(path)


def test_34_configurations_are_shipped() -> None:
    assert len(shipped_names()) == 34
    shipped = {read_model(name).model_type for name in shipped_names()}
    # The others are held against what transformers builds: rows of the table in test_rows, these in test_built_models
    # and test_built_hybrids, the decoder of images below.
    assert shipped | set(ROWS) | set(OTHERS) | set(HYBRID) | {"trocr"} == set(FAMILIES)
    assert len(shipped) == 13


def test_a_folder_is_its_config_json(tmp_path: Path) -> None:
    written(tmp_path)

    assert read_model(str(tmp_path)).hidden == 64


def test_the_hubs_cache_is_looked_at_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "hub" / "models--some--model" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    written(folder)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)

    assert read_model("some/model").vocabulary == 100
    with pytest.raises(UserError, match=r"configuration 'some/other': no such file .* \(--allow-download fetches"):
        read_model("some/other")
    with pytest.raises(UserError, match="configuration 'some': no such file, folder, shipped name or cached model"):
        read_model("some")


def test_p5_a_folder_of_the_hubs_cache_gives_its_main_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "models--some--model-x"
    for name, vocabulary in (("abc", 100), ("def", 200)):
        (folder / "snapshots" / name).mkdir(parents=True)
        written(folder / "snapshots" / name, vocab_size=vocabulary)
    monkeypatch.setenv("HUGGINGFACE_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    os.utime(folder / "snapshots" / "abc" / "config.json", (1, 1))
    newest = read_configuration(str(folder))
    (folder / "refs").mkdir()
    for said, expected in (("abc\n", 100), ("../../elsewhere", 200), ("gone", 200)):
        (folder / "refs" / "main").write_text(said)

        assert read_model("some/model-x").vocabulary == expected
    assert (newest.name, newest.values["vocab_size"]) == ("some/model-x", 200)


def test_p5_a_configuration_is_fetched_only_if_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[tuple[str, str]] = []

    def fetch(name: str, file: str, cache_dir: str) -> str:
        fetched.append((name, file))
        if name == "some/gated":
            raise OSError("401 Client Error\nCannot access gated repo")
        (tmp_path / "got").mkdir(exist_ok=True)
        written(tmp_path / "got")
        assert cache_dir == str(tmp_path)
        return str(tmp_path / "got" / "config.json")

    hub = types.ModuleType("huggingface_hub")
    monkeypatch.setattr(hub, "hf_hub_download", fetch, raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    with pytest.raises(UserError, match="--allow-download fetches"):
        read_configuration("some/model")
    assert not fetched
    assert read_configuration("some/model", may_download=True).values["vocab_size"] == 100
    with pytest.raises(UserError, match=r"'some/gated': cannot be downloaded \(put its config.*: 401 Client Error$"):
        read_configuration("some/gated", may_download=True)
    assert fetched == [("some/model", "config.json"), ("some/gated", "config.json")]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="--allow-download against HF_HUB_OFFLINE"):
        read_configuration("some/model", may_download=True)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"needs huggingface_hub \(pip install huggingface_hub\)"):
        read_configuration("some/model", may_download=True)
    assert read_configuration("gpt2", may_download=True).name == "gpt2"


def test_trap_t6_what_is_left_out_is_filled_in_and_listed(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, num_key_value_heads=None))
    sparse = read_model("gemma-3-4b-minimal")

    assert kv_elements_per_token(model) == 2 * 2 * 8 * 8
    assert "num_key_value_heads = 8: left out, derived as its class does" in model.notes
    assert parameters_of(sparse).total == 3_880_263_168
    assert "vocab_size = 262208: left out, default of its class" in sparse.notes


def test_trap_t5_head_dim_is_that_of_the_file() -> None:
    attention = read_model("qwen3-0.6b").attentions[0]

    assert attention.qk_dim == 128
    assert attention.heads * attention.qk_dim == 2048


def test_trap_t7_a_latent_cache_knows_no_heads() -> None:
    assert 2 * kv_elements_per_token(read_model("deepseek-v3")) == 70_272


def test_trap_t27_windows_and_chunks_are_per_layer() -> None:
    masks = [attention.reach.mask for attention in read_model("llama-4-scout-17b-16e").attentions[:4]]
    gemma = [attention.reach.extent for attention in read_model("gemma-3-27b-text").attentions[:6]]

    assert masks == [Mask.CHUNK, Mask.CHUNK, Mask.CHUNK, Mask.FULL]
    assert gemma == [1024, 1024, 1024, 1024, 1024, 0]


def test_extents_beyond_floats_stay_exact(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, vocab_size=2**60 + 1))

    assert parameters_of(model).head == (2**60 + 1) * 64


BAD = (
    ({"model_type": "lama"}, r"unknown architecture 'lama' \(did you mean 'llama'\?\)"),
    ({"model_type": None}, "found no key 'model_type' against one of afmoe, apertus, apertus1p5_text, arcee"),
    ({"num_attention_heads": 7}, "found 7 heads that do not divide hidden_size 64"),
    ({"num_key_value_heads": 3}, "found 3 heads that do not divide the 8 of num_attention_heads"),
    ({"hidden_size": "64"}, "key 'hidden_size': found '64' against a whole number"),
    ({"hidden_size": 0}, "key 'hidden_size': found 0 against 1 to"),
    ({"hidden_size": True}, "key 'hidden_size': found true against a whole number"),
    ({"attention_bias": 1}, "key 'attention_bias': found 1 against true or false"),
    ({"num_hidden_layers": 10**9}, "found 1000000000 against at most 10000"),
    ({"model_type": "mixtral", "num_experts_per_tok": 9}, "found 9 of 8 experts"),
    ({"model_type": "qwen3", "layer_types": ["full_attention"]}, "found 1 entries against 2 layers"),
    ({"model_type": "qwen3", "layer_types": ["odd", "odd"]}, "key 'layer_types': found 'odd' against full_attention"),
)


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_a_wrong_configuration_is_one_line(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read_model(written(tmp_path, **changed))

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '"x"'])
def test_what_is_no_configuration_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)

    with pytest.raises(UserError, match=r"not JSON|found no keys|nested too deeply") as caught:
        read_model(str(path))

    assert "\n" not in str(caught.value)


FURTHER = (
    "moe_layers", "no_rope_layers", "layer_types", "quantization_config", "torch_dtype", "encoder", "indexer_types",
    "cross_attention_layers",
)  # fmt: skip
BUILT_TOO = [
    json.loads(line)["values"] for path in (OTHERS_BUILT, SEEING_BUILT) for line in path.read_text().splitlines()
]
SPOILT = [
    *(read_configuration(name).values for name in shipped_names()),
    *(text_part(values)[0] for values in BUILT_TOO[:: VARIATIONS // 2]),
]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 300), st.floats(), st.text(max_size=3), st.lists(st.integers(-1, 9)),
    st.lists(st.lists(st.integers())), st.dictionaries(st.text(max_size=2), st.integers()), st.just(2**80),
)  # fmt: skip


@given(st.data())
def test_a_spoilt_configuration_is_a_model_or_one_line(data: st.DataObject) -> None:
    values = dict(data.draw(st.sampled_from(SPOILT)))
    known = sorted({*values, *FURTHER, *class_defaults().get(str(values["model_type"]), {})})
    for key in data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)):
        values[key] = data.draw(VALUES)
    configuration = Configuration("spoilt", "spoilt", values)
    message = ""
    try:
        model = model_of(configuration)
        precision, _ = precision_of(values, model, "spoilt")
        assert parameters_of(model).total > 0
        assert weight_bytes(model, precision) > 0
        assert step_of(model, prefill_batch("5"), precision, StepChoices()).macs > 0
    except UserError as error:
        message = str(error)

    assert "\n" not in message


def test_towers_beside_the_text_model_are_named(tmp_path: Path) -> None:
    text = {**read_configuration("llama-3.1-8b").values}
    outer = {
        "model_type": "llava",
        "text_config": text,
        "vision_config": {"hidden_size": 8},
        "quantization_config": None,
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(outer))

    assert read_configuration(str(file)).towers == ("vision_config",)
    assert read_configuration("llama-3.1-8b").towers == ()
    study = study_of(Request(LanguageOptions(str(file), system="h100-sxm"), (prefill_batch("8"),)))
    assert any("vision_config: left out, the text model alone is counted" in warning for warning in study.warnings)


def test_a_text_model_is_found_where_it_is_nested_twice_or_not_at_all(tmp_path: Path) -> None:
    sizes = {key: value for key, value in TINY.items() if key != "model_type"}
    deep = {"text_config": {"model_type": "qwen2_5_omni_text", **sizes}, "audio_config": {}, "dtype": "float32"}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "qwen2_5_omni", "thinker_config": deep, "talker_config": {}}))

    found = read_configuration(str(file))
    assert (found.towers, found.values["dtype"]) == (("talker_config", "audio_config"), "float32")
    assert model_of(found).model_type == "qwen2_5_omni_text"
    # Older files have the fields of the text model beside the others: this is Qwen2.5-VL-7B, as published.
    published = {
        "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
        "use_sliding_window": False, "max_window_layers": 28, "sliding_window": 32768, "vision_config": {},
    }  # fmt: skip
    file.write_text(json.dumps(published))
    assert read_configuration(str(file)).towers == ("vision_config",)
    assert parameters_of(read_model(str(file))).total == 7_615_616_512


def test_text_models_that_a_file_leaves_out_are_those_of_the_classes() -> None:
    cases = [json.loads(line) for line in NESTED_BUILT.read_text().splitlines()]

    assert sorted(case["values"]["model_type"] for case in cases) == sorted(TEXT_TYPES)
    for case in cases:
        fields, _ = text_part(case["values"])
        model = model_of(Configuration("nested", "nested", fields))
        assert model.model_type == case["text"], case
        found = parameters_of(model)
        assert found.total - found.head == case["total"], case


@pytest.mark.parametrize(
    ("asked", "shipped"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"), ("meta-llama/Meta-Llama-3.1-70B", "llama-3.1-70b"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"), ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"), ("Qwen/Qwen3-8B-FP8", None),
        ("openai-community/gpt2-large", None), ("google/gemma-2-27b-it", "gemma-2-27b"),
        ("meta-llama/Llama-3.2-11B", None), ("meta-llama/Llama-3.1-80B", None), ("Qwen/Qwen3-8.5B", None),
    ],
)  # fmt: skip
def test_for_a_model_of_the_hub_the_shipped_one_is_proposed(
    asked: str, shipped: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    with pytest.raises(UserError, match="--allow-download") as caught:
        read_configuration(asked)
    assert (f"shipped is {shipped!r}" in str(caught.value)) is (shipped is not None)
    assert ("shipped" in str(caught.value)) is (shipped is not None)


def test_decoders_of_images_attend_to_as_many_tokens_as_the_encoders_make() -> None:
    cases = [json.loads(line) for line in SEEING_BUILT.read_text().splitlines()]

    assert [case["values"]["decoder"]["model_type"] for case in cases] == [
        name for name in SEEING for _ in range(VARIATIONS)
    ]
    for case in cases:
        fields, towers = text_part(case["values"])
        model = model_of(Configuration("seeing", "seeing", fields))
        assert towers == ("encoder",)
        assert (parameters_of(model).total, model.encoder_tokens) == (case["total"], case["tokens"]), case
        assert model.most_encoded == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"encoder": {"model_type": "clip"}}, "'encoder': found 'clip' against one of vit, deit, beit, donut-swin"),
        (
            {"encoder": {"model_type": "vit", "image_size": [1, 0]}},
            r"encoder: key 'image_size': found \[1, 0\] against",
        ),
        (
            {"encoder": {"model_type": "donut-swin", "depths": []}},
            r"encoder: key 'depths': found '\[\]' against a list",
        ),
        ({"decoder": {"model_type": "llama"}}, "key 'decoder': found 'llama', which attends to no encoder"),
    ],
)
def test_a_wrong_decoder_of_images_is_refused(changed: dict[str, object], message: str) -> None:
    values = {
        "model_type": "vision-encoder-decoder",
        "encoder": {"model_type": "vit"},
        "decoder": {"model_type": "trocr"},
    }
    with pytest.raises(UserError, match=message):
        model_of(Configuration("seeing", "seeing", text_part(values | changed)[0]))


def test_a_decoder_of_images_needs_its_encoder() -> None:
    with pytest.raises(UserError, match="key 'model_type': found 'trocr' without the encoder"):
        model_of(Configuration("alone", "alone", {"model_type": "trocr"}))

"""Precisions of whole models: shipped configurations, published sizes, notes, and what is not understood."""

import json
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_configuration, read_model, shipped_names
from dfcompile.language_models.footprint import weight_bytes
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.mapping.layer_graph import layer_graph
from dfcompile.language_models.model import with_formats
from dfcompile.language_models.quantisation.precision import precision_of
from dfcompile.language_models.steps.batch import prefill_batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.study import Request, study_of
from dfcompile.options.language_models import LanguageOptions
from tests.unit.language_models.quantisation.examples import EXPERTS, LLAMA, Keys, bits, model, read
from tests.unit.language_models.quantisation.test_compressed_tensors import FLOAT4, FLOAT8, compressed, integer

# As the published files have it.
MXFP4 = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}
FP8: Keys = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic", "fmt": "e4m3"}
PUBLISHED = {"gpt-oss-120b": MXFP4, "gpt-oss-20b": MXFP4, "deepseek-v3": FP8, "deepseek-r1": FP8, "kimi-k2": FP8}


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_configurations_say_what_the_published_ones_say(name: str) -> None:
    assert read_configuration(name).values.get("quantization_config") == PUBLISHED.get(name)


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-120b", 60.77), ("gpt-oss-20b", 12.82)])
def test_p6_experts_in_mxfp4_are_the_published_sizes(name: str, gib: float) -> None:
    precision, _ = precision_of(read_configuration(name).values, read_model(name), name)

    assert round(weight_bytes(read_model(name), precision) / 2**30, 2) == gib


BAD: tuple[tuple[Keys, str], ...] = (
    ({"dtype": "float8"}, "x: key 'dtype': found 'float8' against bfloat16"),
    ({"quantization_config": 3}, "key 'quantization_config': found 3 against a mapping"),
    ({"quantization_config": {}}, "key 'quantization_config.quant_method' is missing"),
    ({"quantization_config": {"quant_method": "odd"}}, "quantization_config.quant_method': found 'odd' against awq"),
    ({"quantization_config": {"quant_method": "awk"}}, r"found 'awk' against .* \(did you mean 'awq'\?\)"),
    ({"quantization_config": {"quant_method": ["awq"]}}, r"quant_method': found \['awq'\] against a text"),
)


@pytest.mark.parametrize(("values", "message"), BAD)
def test_what_is_not_understood_is_refused(values: Keys, message: str) -> None:
    with pytest.raises(UserError, match=message):
        precision_of(values, model(LLAMA), "x")


def test_the_older_name_of_the_key_is_read_as_well() -> None:
    stated = compressed(integer(8))

    assert precision_of({"compression_config": stated}, model(LLAMA), "x")[0] == read(stated)[0]


@pytest.mark.parametrize(
    ("name", "stated", "bits_of_mlp"),
    [
        ("hf_quant_config.json", {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}, 4.5),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "GEMM"}, 4 + 20 / 64),
        ("quantize_config.json", {"bits": 4, "group_size": 32, "desc_act": True, "sym": True}, 4.5),
    ],
)
def test_a_file_beside_the_configuration_is_read(tmp_path: Path, name: str, stated: Keys, bits_of_mlp: float) -> None:
    file, beside = tmp_path / "config.json", tmp_path / name
    file.write_text(json.dumps(LLAMA))
    beside.write_text(json.dumps(stated))
    for asked in (tmp_path, file):
        found = read_configuration(str(asked))
        assert bits(precision_of(found.values, model(found.values), found.where)[0].mlp) == bits_of_mlp

    beside.write_text(json.dumps({**stated, "moons": 3}))
    found = read_configuration(str(tmp_path))
    with pytest.raises(UserError, match=rf"config.json: unknown key '{name}.moons'"):
        precision_of(found.values, model(found.values), found.where)
    beside.write_text("[")
    with pytest.raises(UserError, match=f"{name}: not JSON"):
        read_configuration(str(tmp_path))
    file.write_text(json.dumps({**LLAMA, "quantization_config": {"quant_method": "fp8"}}))
    assert read_configuration(str(tmp_path)).values.keys() == {*LLAMA, "quantization_config"}


def test_a_model_inside_of_another_has_what_the_outer_one_says(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    stated = compressed(integer(8), ignore=["re:.*vision.*", "language_model.lm_head"])
    outer = {"text_config": LLAMA, "vision_config": {}, "torch_dtype": "float16", "compression_config": stated}
    file.write_text(json.dumps({"model_type": "llava", **outer}))
    found = read_configuration(str(file))
    precision, _ = precision_of(found.values, model(found.values), found.where)

    assert found.towers == ("vision_config",)
    assert (precision.mlp.name, precision.head.name) == ("int8", "fp16")


def test_without_the_key_all_is_of_the_dtype() -> None:
    assert precision_of({"torch_dtype": "float16"}, model(LLAMA), "x") == (uniform(FORMATS["fp16"]), ())


def test_notes_say_what_is_in_which_format() -> None:
    _, notes = read(compressed(integer(8), FLOAT8), EXPERTS)
    formats = "attention int8, router bf16, experts int8, embedding bf16, head bf16"

    assert notes == (
        f"matrices as configured (compressed-tensors): {formats}",
        "scales of whole rows, columns or tensors are not counted",
    )


def test_a_tied_head_is_as_the_embedding() -> None:
    tied = {**LLAMA, "tie_word_embeddings": True}
    embedding = {"targets": ["Embedding"], "weights": integer(8)}
    precision, _ = read(compressed(integer(8), config_groups={"g": embedding}, ignore=[]), tied)

    assert (precision.embedding.name, precision.head.name, precision.attention.name) == ("int8", "int8", "bf16")
    assert read(compressed(integer(8), ignore=[]), tied)[0].head.name == "bf16"


def test_biases_and_norms_stay() -> None:
    values = {**LLAMA, "attention_bias": True}
    made, whole = read(compressed(FLOAT4, FLOAT4), values)[0], uniform(FORMATS["bf16"])
    saved = weight_bytes(model(values), whole) - weight_bytes(model(values), made)
    matrices = 3 * (64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 96)

    assert saved == matrices * (16 - 4.5) / 8


FIRST_AND_LAST = [f"model.layers.{layer}.mlp" for layer in (0, 2)]


def test_layers_differ_where_lists_name_some_of_them() -> None:
    stated = {"quant_method": "fbgemm_fp8", "modules_to_not_convert": [*FIRST_AND_LAST, "self_attn", "lm_head"]}
    precision, notes = read(stated)
    bf16, made = FORMATS["bf16"], with_formats(model(LLAMA), precision.layers)

    assert (precision.mlp.name, precision.attention.name) == ("bf16", "bf16")  # of most layers
    assert precision.layers == ((), (("mlp", FORMATS["fp8"]),), ())
    assert "of 3 layers: mlp fp8 in 1" in notes
    assert [(kind.name, kind.count) for kind in made.kinds] == [
        ("full attention, dense", 2),
        ("full attention, dense, mlp fp8", 1),
    ]
    assert weight_bytes(model(LLAMA), uniform(bf16)) - weight_bytes(made, precision) == 3 * 64 * 96


def test_what_dtypes_say_holds_for_all_layers() -> None:
    stated = {"quant_method": "fp8", "modules_to_not_convert": FIRST_AND_LAST}
    precision, _ = read(stated)

    assert with_dtypes(precision, "attention=fp8").layers == precision.layers
    for said in ("mlp=int4", "w=fp8", "fp8"):
        assert not any(with_dtypes(precision, said).layers)


def test_layers_of_two_formats_are_counted_timed_and_mapped_apart(tmp_path: Path) -> None:
    stated = compressed(
        FLOAT8,
        FLOAT8,
        config_groups={
            "a": {"targets": [r"re:model\.layers\.0\..*"], "weights": integer(4, group_size=64)},
            "b": {"targets": [r"re:model\.layers\.1\..*"], "weights": integer(4, group_size=128)},
            "c": {"targets": ["Linear"], "weights": integer(8)},
        },
    )
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA_8B, "num_hidden_layers": 4, "quantization_config": stated}))
    study = study_of(Request(LanguageOptions(str(file), system="h100-sxm"), (prefill_batch("64"),)))
    kinds = [kind.name for kind in study.model.kinds]
    weights = {
        (one.kernel.part, one.kernel.name): one.kernel.weight_bytes
        for one in study.steps[0].deployment.kernels.kernels
        if one.kernel.name == "gate_up"
    }
    elements = 2 * 4096 * 14_336

    assert kinds == [
        "full attention, dense, attention int4, mlp int4",
        "full attention, dense, attention int4, mlp int4 #2",
        "full attention, dense",
    ]
    assert [weights[kind, "gate_up"] for kind in kinds] == [elements * 4.25 / 8, elements * 4.125 / 8, elements]
    graphs = [
        layer_graph(kind.name, kind.layer, study.model.hidden, study.steps[0].batch, study.precision, StepChoices())
        for kind in study.model.kinds
    ]
    assert [
        next(tensor.size_bytes for tensor in graph.tensors if tensor.name == "gate_up.weight") for graph in graphs
    ] == [
        elements * 4.25 / 8,
        elements * 4.125 / 8,
        elements,
    ]


LLAMA_8B: Keys = {**read_configuration("llama-3.1-8b").values}
BLOCKS: Keys = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
TIMED: tuple[tuple[Keys, float, int], ...] = (
    ({}, 68.5, 131_072),
    (BLOCKS, 36.6, 131_072),
    (compressed({**FLOAT8, "strategy": "channel"}, {**FLOAT8, "strategy": "token", "dynamic": True}), 36.6, 131_072),
    (compressed(integer(8), integer(8)), 36.6, 131_072),
    (compressed(FLOAT8, FLOAT8, kv_cache_scheme=FLOAT8), 34.4, 65_536),
)


@pytest.mark.parametrize(("stated", "ms", "per_token"), TIMED)
def test_prompts_are_timed_at_the_rate_of_the_activations(
    tmp_path: Path, stated: Keys, ms: float, per_token: int
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA_8B, "quantization_config": stated or None}))
    study = study_of(Request(LanguageOptions(str(file), system="h100-sxm"), (prefill_batch("4096"),)))

    assert round(study.steps[0].exec_s * 1e3, 1) == ms
    assert study.kv_bytes_per_token == per_token

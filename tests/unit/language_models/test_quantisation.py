"""Formats of tensors: published sizes, configurations that state them, and bytes of caches."""

from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_configuration, read_model
from dfcompile.language_models.footprint import kv_bytes, weight_bytes
from dfcompile.language_models.formats import FORMATS, NumberFormat, uniform, with_dtypes
from dfcompile.language_models.parameters import kv_elements_per_token, parameters_of
from dfcompile.language_models.quantisation import precision_of
from dfcompile.language_models.steps.batch import decode_batch, prefill_batch
from dfcompile.language_models.study import Request, study_of
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
MXFP4 = {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}}


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-120b", 60.77), ("gpt-oss-20b", 12.82)])
def test_p6_experts_in_mxfp4_are_the_published_sizes(name: str, gib: float) -> None:
    precision, _ = precision_of({**read_configuration(name).values, **MXFP4}, name)

    assert round(weight_bytes(read_model(name), precision) / 2**30, 2) == gib


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "gpt-oss-20b"])
def test_trap_t17_sixteen_bits_are_two_bytes_per_parameter(name: str) -> None:
    model = read_model(name)

    assert weight_bytes(model, BF16) == 2 * parameters_of(model).total
    assert kv_bytes(model, prefill_batch("64x3"), BF16) == 2 * 3 * 64 * kv_elements_per_token(model)


def test_8192_tokens_of_llama_8b_are_a_gibibyte_and_deepseeks_160k_11() -> None:
    assert kv_bytes(read_model("llama-3.1-8b"), prefill_batch("8192"), BF16) == 2**30
    assert round(kv_bytes(read_model("deepseek-v3"), prefill_batch("163840"), BF16) / 2**30, 2) == 10.72


def test_p1_blocks_round_up_and_a_prefix_is_held_once() -> None:
    model = read_model("llama-3.1-8b")
    plain, blocks, shared = (
        kv_bytes(model, decode_batch("1001x8"), BF16, block=block, shared_prefix=prefix) // 131_072
        for block, prefix in ((1, 0), (16, 0), (16, 1000))
    )

    assert (plain, blocks, shared) == (8008, 8 * 1008, 8 * 16 + 992)


STATED: tuple[tuple[dict[str, object], NumberFormat], ...] = (
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, NumberFormat("fp8", 8, 16_384, 32)),
    ({"quant_method": "fp8"}, FORMATS["fp8"]),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, NumberFormat("int4", 4, 128, 20)),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, NumberFormat("int8", 8)),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, FORMATS["int8"]),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, NumberFormat("int4", 4, 64, 16)),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
        },
        FORMATS["fp8"],
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 64}}},
        },
        NumberFormat("int4", 4, 64, 16),
    ),
)


@pytest.mark.parametrize(("stated", "expected"), STATED)
def test_p6_formats_that_configurations_state(stated: dict[str, object], expected: NumberFormat) -> None:
    precision, notes = precision_of({"torch_dtype": "float16", "quantization_config": stated}, "x")

    assert (precision.attention, precision.mlp, precision.experts) == (expected, expected, expected)
    assert (precision.head.name, precision.kv.name) == ("fp16", "fp16")
    assert len(notes) == 1


BAD: tuple[tuple[dict[str, object], str], ...] = (
    ({"dtype": "float8"}, "key 'dtype': found 'float8' against bfloat16"),
    ({"quantization_config": 3}, "key 'quantization_config': found 3 against a mapping"),
    ({"quantization_config": {"quant_method": "odd"}}, "unknown quant_method 'odd' against awq"),
    ({"quantization_config": {"quant_method": "awq", "bits": "4"}}, "found '4' against a whole number"),
    ({"quantization_config": {"quant_method": "compressed-tensors"}}, "key 'config_groups': found no weights"),
)


@pytest.mark.parametrize(("values", "message"), BAD)
def test_what_is_not_understood_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        precision_of(values, "x")


def test_dtypes_by_class() -> None:
    made = with_dtypes(BF16, "w=fp8,head=bf16,kv=fp8")

    assert made.summary == "w=fp8,head=bf16,a=bf16,kv=fp8"
    assert with_dtypes(BF16, "fp16") == uniform(FORMATS["fp16"])
    for text, message in (
        ("x=fp8", "unknown class of tensors 'x'"),
        ("w=fp9", r"unknown number format 'fp9' \(did you mean 'fp8'"),
        ("w=fp8,w=fp8", "found 'w' twice"),
    ):
        with pytest.raises(UserError, match=message):
            with_dtypes(BF16, text)


def test_weights_of_four_bits_multiply_as_activations_do() -> None:
    assert with_dtypes(BF16, "w=int4").product(FORMATS["int4"]) == "bf16"
    assert with_dtypes(BF16, "w=fp32,a=bf16").product(FORMATS["fp32"]) == "fp32"


def test_p6_a_listed_mixed_rate_is_taken_and_nothing_is_widened(tmp_path: Path) -> None:
    sheet = "name,arrays\npeak.bf16 [TFLOP/s],100\n{}memory.bandwidth [TB/s],1000\nenergy.mac.bf16 [pJ],2\n"
    plain, mixed = tmp_path / "plain.csv", tmp_path / "mixed.csv"
    plain.write_text(sheet.format(""))
    mixed.write_text(sheet.format("peak.int4_bf16 [TFLOP/s],300\n"))
    asked = Request("llama-3.1-8b", "", (prefill_batch("4096"),), dtypes="w=int4,a=bf16,kv=bf16,head=bf16")

    wide, pair = (study_of(replace(asked, system=f"{file}:arrays")) for file in (plain, mixed))

    kernels = [
        {one.kernel.name: one for one in study.steps[0].deployment.kernels.kernels if one.kernel.weight_bytes}
        for study in (wide, pair)
    ]
    for name in ("qkv_proj", "down"):
        one, other = (found[name] for found in kernels)
        assert (one.kernel.rate, other.kernel.rate) == ("bf16", "int4_bf16")
        assert one.time.exec_s == pytest.approx(3 * other.time.exec_s)
        assert one.kernel.vector_elements == one.kernel.k * one.kernel.n
        assert other.kernel.vector_elements == 0
        assert pair.device.mac_pj(other.kernel.rate) == 2
    assert kernels[1]["lm_head"].kernel.rate == "bf16"

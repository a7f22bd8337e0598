"""Formats of tensors: bytes of weights and caches, and what --dtype and a machine make of them."""

from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.footprint import kv_elements_per_token, layer_kv_bytes, parameters_of, weight_bytes
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.model import Model
from dfcompile.language_models.steps.batch import Batch, decode_batch, prefill_batch
from dfcompile.language_models.study import Request, study_of
from dfcompile.options.language_models import LanguageOptions
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])


def kv_bytes(model: Model, batch: Batch, block: int = 1, prefix: int = 0) -> int:
    """Bytes of the caches of all layers after a step."""
    return sum(layer_kv_bytes(layer, batch, BF16, block=block, shared_prefix=prefix) for layer in model.layers)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "gpt-oss-20b"])
def test_trap_t17_sixteen_bits_are_two_bytes_per_parameter(name: str) -> None:
    model = read_model(name)

    assert weight_bytes(model, BF16) == 2 * parameters_of(model).total
    assert kv_bytes(model, prefill_batch("64x3")) == 2 * 3 * 64 * kv_elements_per_token(model)


def test_8192_tokens_of_llama_8b_are_a_gibibyte_and_deepseeks_160k_11() -> None:
    assert kv_bytes(read_model("llama-3.1-8b"), prefill_batch("8192")) == 2**30
    assert round(kv_bytes(read_model("deepseek-v3"), prefill_batch("163840")) / 2**30, 2) == 10.72


def test_p1_blocks_round_up_and_a_prefix_is_held_once() -> None:
    model = read_model("llama-3.1-8b")
    plain, blocks, shared = (
        kv_bytes(model, decode_batch("1001x8"), block, prefix) // 131_072
        for block, prefix in ((1, 0), (16, 0), (16, 1000))
    )

    assert (plain, blocks, shared) == (8008, 8 * 1008, 8 * 16 + 992)


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
    asked = LanguageOptions("llama-3.1-8b", dtype="w=int4,a=bf16,kv=bf16,head=bf16")

    wide, pair = (
        study_of(Request(replace(asked, system=f"{file}:arrays"), (prefill_batch("4096"),))) for file in (plain, mixed)
    )

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

"""``modelopt``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import EXPERTS, Example, Keys, bits, read

PRODUCER = {"name": "modelopt", "version": "0.29.0"}


def file(algorithm: str | None, **more: object) -> Keys:
    """As hf_quant_config.json has it."""
    return {"producer": PRODUCER, "quantization": {"quant_algo": algorithm, "exclude_modules": ["lm_head"], **more}}


def converted(weights: Keys, algorithm: str, **more: object) -> Keys:
    """As newer config.json have it."""
    group = {"weights": {"dynamic": False, **weights}, "targets": ["Linear"]}
    return {
        "quant_method": "modelopt", "quant_algo": algorithm, "config_groups": {"group_0": group}, "producer": PRODUCER,
        "ignore": ["lm_head"], **more,
    }  # fmt: skip


EXAMPLES = (
    Example(file("FP8", kv_cache_quant_algo="FP8"), 8, "fp8", "fp8"),
    Example(file("NVFP4", group_size=16, kv_cache_quant_algo=None), 4.5, "nvfp4"),
    Example(file("NVFP4", group_size=16, kv_cache_quant_algo="NVFP4", exclude_modules=["*self_attn*", "lm_head"]), 4.5,
            "nvfp4", "nvfp4", attention=16),
    Example(file("W4A16_AWQ", group_size=128, has_zero_point=False, pre_quant_scale=True, kv_cache_quant_algo="FP8"),
            4.125, kv="fp8"),
    Example(file("W4A16_AWQ", group_size=64, has_zero_point=True), 4 + 20 / 64),
    Example(file("W4A8_AWQ", group_size=128), 4.125, "fp8"),
    Example(file("W8A8_SQ_PER_CHANNEL"), 8, "int8"),
    Example(file("W8A16"), 8),
    Example(file("MXFP8", group_size=32), 8.25, "fp8"),
    Example(file("fp8_pb_wo"), 8 + 32 / 128**2),
    Example(file("W4A16_NVFP4", group_size=16, exclude_modules=None), 4.5, head=4.5),
    Example(file(None, kv_cache_quant_algo="INT8"), 16, kv="int8"),
    Example({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "ignore": ["lm_head"]}, 8,
            "fp8", "fp8"),
    Example(converted({"num_bits": 8, "type": "float"}, "FP8", kv_cache_scheme={"num_bits": 8, "type": "float"}), 8,
            "fp8", "fp8"),
    Example(converted({"num_bits": 4, "type": "float", "group_size": 16}, "NVFP4", kv_cache_scheme="NVFP4"), 4.5,
            "nvfp4", "nvfp4"),
    Example(converted({"num_bits": 4, "type": "int", "group_size": 32}, "W4A16_AWQ"), 4.5),
    Example(
        file("MIXED_PRECISION", quantized_layers={
            **{f"model.layers.{layer}.self_attn.{name}_proj": {"quant_algo": "FP8"}
               for layer in range(3) for name in "qkvo"},
            **{f"model.layers.{layer}.mlp": {"quant_algo": "W4A8_AWQ", "awq_block_size": 64, "has_zero_point": False}
               for layer in range(3)},
        }),
        4.25, "fp8", attention=8,
    ),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_experts_alone() -> None:
    stated = file("NVFP4", exclude_modules=["*self_attn*", "*mlp.gate", "lm_head"])
    precision, _ = read(stated, EXPERTS)

    assert (bits(precision.experts), bits(precision.attention)) == (4.5, 16)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (file("INT3"), "quantization_config.quantization.quant_algo': found 'INT3' against FP8"),
        (file("MIXED_PRECISION"), "quantization.quantized_layers': found None against layers"),
        (file("FP8", group_size=128), "quantization.group_size': found 128 against none, as quant_algo is FP8"),
        (file("FP8", quantized_layers={"a": {"quant_algo": "FP8"}}), "quantized_layers': found .* against none, as"),
        (file("FP8", kv_cache_quant_algo="FP6"), "quantization.kv_cache_quant_algo': found 'FP6' against FP8, INT8"),
        (converted({"num_bits": 8, "type": "float"}, "NVFP4"), "group_0.weights': found 8 against the 4 bits of NVFP4"),
        (file("MIXED_PRECISION", quantized_layers={"lm_head": {"quant_algo": "FP8", "a": 1}}),
         "unknown key 'quantization_config.quantization.quantized_layers.lm_head.a'"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_named(stated: Keys, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(stated)

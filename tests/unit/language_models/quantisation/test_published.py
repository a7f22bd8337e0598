"""Configurations as published checkpoints have them, on the models that they are of."""

import pytest

from dfcompile.language_models.configuration.reading import read_configuration, read_model
from dfcompile.language_models.footprint import weight_bytes
from dfcompile.language_models.model import with_formats
from dfcompile.language_models.quantisation.precision import precision_of
from tests.unit.language_models.quantisation.examples import Keys, bits

LAYERS_405B = 126
FBGEMM: Keys = {
    "activation_scale_ub": 1200.0,
    "modules_to_not_convert": [
        "lm_head",
        *(f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, LAYERS_405B - 1) for name in ("down", "gate", "up")),
        *(f"model.layers.{layer}.self_attn.{name}_proj" for layer in range(LAYERS_405B) for name in "qkvo"),
    ],
    "quant_method": "fbgemm_fp8",
}
THINKING: Keys = {
    "config_groups": {"group_0": {
        "input_activations": None, "output_activations": None, "targets": ["Linear"],
        "weights": {"actorder": None, "block_structure": None, "dynamic": False, "group_size": 32, "num_bits": 4,
                    "observer": "minmax", "observer_kwargs": {}, "strategy": "group", "symmetric": True, "type": "int"},
    }},
    "format": "pack-quantized",
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"],
    "kv_cache_scheme": None, "quant_method": "compressed-tensors", "quantization_status": "compressed",
}  # fmt: skip
NVIDIA: Keys = {
    "quant_algo": "NVFP4", "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
    "config_groups": {"group_0": {
        "input_activations": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
        "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"],
    }},
    "ignore": ["lm_head", "model.layers.*.self_attn*", "model.layers.61*"],
    "producer": {"name": "modelopt", "version": "0.33.1"}, "quant_method": "modelopt",
}  # fmt: skip
UNSLOTH: Keys = {
    "_load_in_4bit": True, "_load_in_8bit": False, "bnb_4bit_compute_dtype": "bfloat16",
    "bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
    "llm_int8_enable_fp32_cpu_offload": False, "llm_int8_has_fp16_weight": False,
    "llm_int8_skip_modules": ["lm_head", "multi_modal_projector", "merger", "modality_projection",
                              "model.layers.1.self_attn", "model.layers.1.mlp", "model.layers.31.mlp"],
    "llm_int8_threshold": 6.0, "load_in_4bit": True, "load_in_8bit": False, "quant_method": "bitsandbytes",
}  # fmt: skip
DOUBLE = 4 + (8 + 32 / 256) / 64


@pytest.mark.parametrize(
    ("name", "stated", "found", "gib"),
    [
        ("llama-3.1-405b", FBGEMM, (16, 8, 16, 16), 453.7),
        ("kimi-k2", THINKING, (16, 16, 4.5, 16), 553.4),
        ("deepseek-v3", NVIDIA, (16, 4.5, 4.5, 16), 369.4),
        ("llama-3.1-8b", UNSLOTH, (DOUBLE, DOUBLE, 16, 16), 5.9),
    ],
)
def test_published(name: str, stated: Keys, found: tuple[float, ...], gib: float) -> None:
    model = read_model(name)
    precision, _ = precision_of({**read_configuration(name).values, "quantization_config": stated}, model, name)
    of_classes = (precision.attention, precision.mlp, precision.experts, precision.head)

    assert tuple(map(bits, of_classes)) == found
    assert round(weight_bytes(with_formats(model, precision.layers), precision) / 2**30, 1) == gib

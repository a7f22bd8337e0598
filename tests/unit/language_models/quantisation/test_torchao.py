"""``torchao``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import Example, Keys, read


def tagged(kind: str, data: object = None) -> Keys:
    return {"_type": kind, "_version": 1, "_data": data}


def config(kind: str, **data: object) -> Keys:
    return {"quant_method": "torchao", "quant_type": {"default": tagged(kind, data)}}


LAYOUT = tagged("TensorCoreTiledLayout", {"inner_k_tiles": 8})
NAMED = {
    "_default": tagged("Int4WeightOnlyConfig", {"group_size": 128}),
    r"re:model\.layers\..*\.self_attn\..*": None,
    "model.layers.0.mlp.gate_proj": tagged("Int4WeightOnlyConfig", {"group_size": 128}),
}
EXAMPLES = (
    Example(config("Int4WeightOnlyConfig", group_size=64, layout=LAYOUT, use_hqq=False, set_inductor_config=True,
                   zero_point_domain=tagged("ZeroPointDomain", "FLOAT")), 4.5),
    Example({"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 128},
             "modules_to_not_convert": ["self_attn"]}, 4.25, head=4.25, attention=16),
    Example({"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int8_weight"}, 8, "int8"),
    Example(config("Float8DynamicActivationFloat8WeightConfig", granularity=[tagged("PerRow", {"dim": -1})] * 2,
                   weight_dtype=tagged("torch.dtype", "float8_e4m3fn")), 8, "fp8"),
    Example(config("Float8WeightOnlyConfig"), 8),
    Example(config("Int8WeightOnlyConfig", group_size=None, mm_config=tagged("Float8MMConfig", {"emulate": False})), 8),
    Example(config("Int4WeightOnlyConfig", layout=["Int4CPULayout", {}]), 4.25),
    Example(config("Int8DynamicActivationInt4WeightConfig"), 4.5, "int8"),
    Example(config("Float8DynamicActivationInt4WeightConfig"), 4.125, "fp8"),
    Example(config("IntxWeightOnlyConfig", weight_dtype=tagged("torch.dtype", "int3"),
                   granularity=tagged("PerGroup", {"group_size": 32})), 3.5),
    Example(config("Int8DynamicActivationIntxWeightConfig", weight_dtype="torch.int4",
                   weight_granularity=tagged("PerAxis", {"axis": 0})), 4, "int8"),
    Example(config("ModuleFqnToConfig", module_fqn_to_config=NAMED), 4.25, attention=16),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (config("AutoQuantConfig"), "quant_type.default._type': found 'AutoQuantConfig' against int4"),
        ({"quant_method": "torchao", "quant_type": "autoquant"}, "config.quant_type': found 'autoquant' against int4"),
        (config("Int8WeightOnlyConfig", layout=tagged("SemiSparseLayout")), "_data.layout': sparse weights"),
        (config("Float8WeightOnlyConfig", weight_dtype="torch.int8"), "weight_dtype': found 'int8' against float8"),
        (config("Int8WeightOnlyConfig", granularity=tagged("PerMoon")), "granularity._type': found 'PerMoon' against"),
        ({**config("Int8WeightOnlyConfig"), "include_input_output_embeddings": True}, "embeddings': a quantised"),
        ({"quant_method": "torchao"}, "key 'quantization_config.quant_type' is missing"),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig"}, "x": 1}},
         "unknown key 'quantization_config.quant_type.x'"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_named(stated: Keys, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(stated)

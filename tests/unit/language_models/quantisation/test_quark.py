"""``quark``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import Example, Keys, read


def spec(dtype: str, **more: object) -> Keys:
    return {
        "dtype": dtype, "is_dynamic": False, "qscheme": "per_tensor", "ch_axis": None, "group_size": None,
        "symmetric": True, "round_method": "half_even", "scale_type": "float", "scale_format": None,
        "scale_calculation_mode": None, "mx_element_dtype": None, "observer_cls": "PerTensorMinMaxObserver",
        "is_scale_quant": False, **more,
    }  # fmt: skip


def layer(weight: Keys | None, inputs: Keys | None = None, outputs: Keys | None = None) -> Keys:
    return {"weight": weight, "input_tensors": inputs, "output_tensors": outputs, "bias": None, "target_device": None}


def quark(every: Keys, **more: object) -> Keys:
    return {"quant_method": "quark", "global_quant_config": every, "exclude": ["lm_head"], **more}


FP8 = spec("fp8_e4m3")
GROUPED = {"qscheme": "per_group", "group_size": 128}
MXFP4 = spec("fp4", qscheme="per_group", group_size=32, scale_format="e8m0")
EXPORT = {"kv_cache_group": [], "min_kv_scale": 0.0, "pack_method": "reorder", "weight_format": "real_quantized",
          "weight_merge_groups": None}  # fmt: skip
EXAMPLES = (
    Example(quark(layer(FP8, FP8), export=EXPORT, algo_config=None, softmax_quant_spec=None, quant_mode="eager_mode",
                  version="0.8", layer_quant_config={}, layer_type_quant_config={}), 8, "fp8"),
    Example(quark(layer(MXFP4, {**MXFP4, "is_dynamic": True})), 4.25, "mxfp4"),
    Example(quark(layer(spec("int4", **GROUPED)), algo_config={"name": "awq", "scaling_layers": []}), 4.125),
    Example(quark(layer(spec("uint4", **GROUPED, symmetric=False)), exclude=[]), 4 + 20 / 128, head=4 + 20 / 128),
    Example(quark(layer(spec("int8", qscheme="per_channel"), spec("int8"))), 8, "int8"),
    Example(quark(layer(spec("fp6_e3m2", qscheme="per_group", group_size=32, scale_format="e8m0"))), 6.25),
    Example(quark(layer(spec("mx", mx_element_dtype="fp8_e4m3", qscheme="per_group", group_size=32))), 8.25),
    Example(quark(layer(spec("fp8_e4m3", qscheme="per_block", block_size=[128, 128], scale_type="float32"))),
            8 + 32 / 128**2),
    Example(quark(layer(FP8, FP8), kv_cache_quant_config={"*k_proj": layer(FP8, FP8, FP8),
                                                          "*v_proj": layer(FP8, FP8, FP8)}), 8, "fp8", "fp8"),
    Example(quark(layer(FP8, FP8), layer_quant_config={"*k_proj": layer(FP8, FP8, FP8),
                                                       "*v_proj": layer(FP8, FP8, FP8)}), 8, "fp8", "fp8"),
    Example(quark(layer(MXFP4), layer_quant_config={"*self_attn*": layer(spec("int8", qscheme="per_channel"))}), 4.25,
            attention=8),
    Example(quark(layer(FP8, FP8), exclude=["lm_head", "re:.*self_attn.*"], algo_config=[{"name": "smooth"}]), 8, "fp8",
            attention=16),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (quark(layer(spec("mx9"))), "global_quant_config.weight.dtype': found 'mx9' against"),
        (quark(layer(FP8, None, FP8)), "global_quant_config.output_tensors': quantised results"),
        (quark({**layer(FP8), "bias": FP8}), "global_quant_config.bias': quantised biases"),
        (quark(layer(None, FP8)), "global_quant_config.weight': found None against a format, as input_tensors"),
        (quark(layer(FP8), softmax_quant_spec=FP8), "softmax_quant_spec': quantised scores"),
        (quark(layer(FP8), algo_config=[{"name": "svdquant"}]), "algo_config': the products that 'svdquant' adds"),
        (quark(layer(FP8), export={"weight_format": "fake_quantized"}), "export.weight_format': found 'fake_quan"),
        (quark(layer(spec("int4", qscheme="per_group"))), "weight.group_size': found None against the elements"),
        (quark(layer(FP8), layer_quant_config={"*o_proj": layer(FP8, None, FP8)}), "_quant_config.*output_tensors"),
        (quark(layer(FP8), layer_quant_config={"*k_proj": layer(FP8, None, FP8), "*v_proj": layer(FP8, None,
         spec("int8"))}), "keys and values of several formats"),
        (quark(layer(FP8), layer_quant_config={"*o_proj": layer(spec("int4"))}), "o_proj': found 1 of 4 attention"),
        ({"quant_method": "quark"}, "global_quant_config': found None against a mapping"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_named(stated: Keys, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(stated)

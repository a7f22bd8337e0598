"""``gptq``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import EXPERTS, Example, bits, read

EXAMPLES = (
    Example({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4.125),
    Example({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False}, 4 + 20 / 32),
    Example({"quant_method": "gptq", "bits": 4, "sym": True, "data_type": "int", "iters": 200, "amp": True}, 4.125),
    Example({"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": True}, 8, head=8),
    Example({"bits": 3, "group_size": 128, "desc_act": False, "damp_percent": 0.1, "sym": True}, 3.125),
    Example(
        {
            "quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": True, "dataset": ["c4"],
            "checkpoint_format": "gptq_v2", "pack_dtype": "int32", "meta": {"quantizer": ["gptqmodel:1.4"], "uri": ""},
            "exllama_config": {"version": 1}, "modules_in_block_to_quantize": [["mlp.gate_proj", "mlp.up_proj"],
            ["mlp.down_proj"]], "block_name_to_quantize": "model.layers",
        },
        4.125,
        attention=16,
        free=("quantization_config.meta",),
    ),
    Example(
        {
            "quant_method": "gptq", "bits": 4, "group_size": 128,
            "dynamic": {"-:.*self_attn": {}, "+:.*mlp": {"bits": 8, "group_size": 64, "damp_percent": 0.1}},
        },
        8.25,
        attention=16,
    ),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_patterns_tell_experts_apart() -> None:
    stated = {"quant_method": "gptq", "bits": 4, "dynamic": {r"-:.*experts\.[0-3]\.": {}}}

    assert bits(read(stated, EXPERTS)[0].experts) == 16
    with pytest.raises(UserError, match=r"found 3 of 12 experts modules in bf16, 'model.layers.0.mlp.experts.3.gate"):
        read({**stated, "dynamic": {r"-:.*experts\.3\.": {}}}, EXPERTS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"checkpoint_format": "qqq"}, "quantization_config.checkpoint_format': found 'qqq' against gptq, gptq_v2"),
        ({"data_type": "mx_fp"}, "quantization_config.data_type': found 'mx_fp' against int"),
        ({"rotation": "hadamard"}, "quantization_config.rotation': further products beside those of the model"),
        ({"block_name_to_quantize": "visual.blocks"}, "block_name_to_quantize': found 'visual.blocks' against"),
        ({"dynamic": {"-:(": {}}}, r"quantization_config.dynamic': found the pattern 're:\(': missing \)"),
        ({"dynamic": {"-:(a+)+": {}}}, r"found 're:\(a\+\)\+' against a pattern of at most 6 repetitions"),
        ({"dynamic": {"+:.*mlp": {"bits": 40}}}, r"config.dynamic.\+:.\*mlp.bits': found 40 against 1 to 8 bits"),
        ({"bits": True}, "quantization_config.bits': found True against a whole number"),
    ],
)
def test_what_is_not_modelled_is_named(more: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read({"quant_method": "gptq", "bits": 4, **more})

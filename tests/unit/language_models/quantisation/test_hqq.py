"""``hqq``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import Example, read


def tensors(**weights: object) -> dict[str, object]:
    more = {"axis": 1, "optimize": True, "round_zero": True, "view_as_float": False}
    return {
        "weight_quant_params": {**weights, **more},
        "scale_quant_params": None,
        "zero_quant_params": None,
        "offload_meta": False,
    }


EXAMPLES = (
    Example({"quant_method": "hqq", "quant_config": tensors(nbits=3, group_size=64)}, 3.5),
    Example({"quant_method": "hqq", "quant_config": tensors(nbits=8, group_size=None), "skip_modules": []}, 8, head=8),
    Example({"quant_method": "hqq", "quant_config": tensors(nbits=4, group_size=64, channel_wise=False)}, 4),
    Example(
        {
            "quant_method": "hqq",
            "quant_config": {
                **{f"self_attn.{name}_proj": tensors(nbits=4, group_size=64) for name in "qkvo"},
                **{f"mlp.{name}_proj": tensors(nbits=2, group_size=32) for name in ("gate", "up", "down")},
            },
            "skip_modules": ["lm_head"],
        },
        3,
        attention=4.5,
    ),
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_quantised_scales_are_not_modelled() -> None:
    stated = {"quant_method": "hqq", "quant_config": {**tensors(nbits=4), "zero_quant_params": {"nbits": 8}}}

    with pytest.raises(UserError, match=r"quantization_config.quant_config.zero_quant_params': scales and zero points"):
        read(stated)

"""``fp8``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import LATENT, Example, bits, read

BLOCK = 8 + 32 / 128**2
EXAMPLES = (
    Example(
        {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic", "fmt": "e4m3"},
        BLOCK,
        "fp8",
    ),
    Example({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]}, 8, "fp8"),
    Example({"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}, 8, "fp8", head=8, attention=16),
    Example({"quant_method": "fp8", "kv_cache_scheme": "static", "scale_fmt": "ue8m0"}, 8, "fp8", "fp8"),
    Example({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 8, "fp8", "fp8"),
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_shared_experts_and_latents_are_quantised_as_well() -> None:
    precision, _ = read(EXAMPLES[0].stated, LATENT)

    assert [bits(form) for form in (precision.attention, precision.mlp, precision.experts)] == [BLOCK] * 3
    assert bits(precision.head) == bits(precision.router) == 16


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dequantize": True}, "quantization_config.dequantize': weights that are widened"),
        ({"weight_block_size": [128]}, r"weight_block_size': found \[128\] against two positive extents"),
        ({"weight_block_size": [128, "a"]}, "weight_block_size.1': found 'a' against a whole number"),
        ({"activation_scheme": "token"}, "activation_scheme': found 'token' against dynamic or static"),
        (
            {"kv_cache_scheme": {"num_bits": 8, "type": "float", "a": 1}},
            "unknown key 'quantization_config.kv_cache_sch",
        ),
    ],
)
def test_what_is_not_modelled_is_named(more: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read({"quant_method": "fp8", **more})

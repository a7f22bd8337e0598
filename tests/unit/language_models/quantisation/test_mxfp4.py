"""``mxfp4``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import EXPERTS, Example, bits, read

KEPT = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
EXAMPLES = (Example({"quant_method": "mxfp4", "modules_to_not_convert": KEPT}, 16),)


@pytest.mark.parametrize("example", EXAMPLES)
def test_matrices_that_are_no_experts_stay(example: Example) -> None:
    example.check()


def test_experts_have_a_scale_of_8_bits_per_32_elements() -> None:
    assert bits(read(EXAMPLES[0].stated, EXPERTS)[0].experts) == 4.25


def test_widened_weights_are_not_modelled() -> None:
    with pytest.raises(UserError, match=r"quantization_config.dequantize': weights that are widened"):
        read({"quant_method": "mxfp4", "dequantize": True})

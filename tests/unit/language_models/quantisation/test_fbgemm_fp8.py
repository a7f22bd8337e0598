"""``fbgemm_fp8``."""

import pytest

from tests.unit.language_models.quantisation.examples import Example

EXAMPLES = (
    Example({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, 8, "fp8"),
    Example(
        {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head", "model.layers.*.self_attn"]},
        8,
        "fp8",
        attention=16,
    ),
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()

"""``bitsandbytes``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import Example, read

DOUBLE = 4 + (8 + 32 / 256) / 64
EXAMPLES = (
    Example({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5),
    Example({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, DOUBLE),
    Example({"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": 6.0}, 8, "int8"),
    Example({"load_in_8bit": True, "llm_int8_skip_modules": ["self_attn"]}, 8, "int8", head=8, attention=16),
    Example(
        {
            "_load_in_4bit": True, "_load_in_8bit": False, "bnb_4bit_compute_dtype": "bfloat16",
            "bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": False,
            "llm_int8_enable_fp32_cpu_offload": False, "llm_int8_has_fp16_weight": False,
            "llm_int8_skip_modules": None, "llm_int8_threshold": 6.0, "load_in_4bit": True, "load_in_8bit": False,
            "quant_method": "bitsandbytes",
        },
        4.5,
    ),
    Example({"quant_method": "bitsandbytes", "load_in_4bit": False}, 16),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_outliers_are_noted() -> None:
    assert any("outliers" in note for note in read(EXAMPLES[2].stated)[1])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"load_in_8bit": True}, "load_in_4bit': found True against false, as load_in_8bit is true"),
        ({"bnb_4bit_quant_type": "int4"}, "bnb_4bit_quant_type': found 'int4' against fp4 or nf4"),
    ],
)
def test_contradictions_are_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read({"quant_method": "bitsandbytes", "load_in_4bit": True, **more})

"""``awq``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import Example, bits, read

EXAMPLES = (
    Example({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
    Example({"quant_method": "awq", "group_size": 64, "zero_point": False, "lm_head": True}, 4.25, head=4.25),
    Example({"quant_method": "awq", "bits": 4, "group_size": -1, "zero_point": True}, 4),
    # As older files have it, which do not even name the method.
    Example({"w_bit": 8, "q_group_size": 32, "zero_point": True, "version": "GEMM"}, 8 + 24 / 32),
    Example(
        {
            "quant_method": "awq", "w_bit": 4, "bits": 4, "q_group_size": 128, "backend": "autoawq",
            "do_fuse": False, "exllama_config": {"version": 2, "max_input_len": 2048, "max_batch_size": 8},
            "modules_to_fuse": {"attention": ["q_proj"], "use_alibi": False}, "fuse_max_seq_len": None,
            "modules_to_not_convert": ["self_attn"], "version": "gemm",
        },
        4 + 20 / 128,
        attention=16,
    ),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_two_spellings_that_differ_are_refused() -> None:
    with pytest.raises(UserError, match=r"key 'quantization_config.w_bit': found 8 against the 4 of bits"):
        read({"quant_method": "awq", "bits": 4, "w_bit": 8})


def test_keys_that_are_left_out_are_those_of_the_class() -> None:
    assert bits(read({"quant_method": "awq"})[0].mlp) == 4 + 20 / 128

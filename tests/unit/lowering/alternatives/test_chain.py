"""The longest chain that no lowering avoids, by hand; `test_outlines` holds it against schedules."""

import numpy as np
import pytest

from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.bound import longest_chain
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
SUM = "g (float[2,24] x) => (float[2] y) { y = ReduceSum<keepdims=0>(x, a) }"


@pytest.mark.parametrize(("length", "cycles"), [(4, 3), (24, 4), (64, 5), (1024, 7)])
def test_a_sum_over_memory_is_done_in_parts_and_a_tree(length: int, cycles: int) -> None:
    """Parts of two elements at least, in two cycles; then four partial results a cycle: 12 of them in two."""
    program = program_from_text(SUM.replace("24", str(length)), a=np.array([1]))

    assert longest_chain(known_alternatives(program, TABLE)) == cycles


@pytest.mark.parametrize(("word", "cycles"), [(1, 4), (2, 3), (5, 2), (24, 1), (100, 1)])
def test_a_wide_word_shortens_it_to_one_cycle_at_least(word: int, cycles: int) -> None:
    program = program_from_text(SUM, a=np.array([1]))

    assert longest_chain(known_alternatives(program, TABLE), word) == cycles


def test_each_elementwise_operator_adds_a_cycle() -> None:
    program = program_from_text("g (float[7] x) => (float[7] z) { y = Relu(x) w = Neg(y) z = Relu(w) }")

    assert longest_chain(known_alternatives(program, TABLE)) == 3


def test_outer_products_spare_a_product_its_sum_over_k() -> None:
    """A multiplication, then a sum that takes one element of each of 32 streams."""
    program = program_from_text("g (float[2,32] x, float[32,2] w) => (float[2,2] y) { y = MatMul(x, w) }")

    assert longest_chain(known_alternatives(program, TABLE)) == 2


def test_a_reader_waits_for_a_sum() -> None:
    program = program_from_text(
        "g (float[1,3,4,4] x) => (float[1,1,4,4] z) { y = ReduceSum<keepdims=1>(x, a) z = Relu(y) }", a=np.array([1])
    )

    assert longest_chain(known_alternatives(program, TABLE)) == 3 + 1

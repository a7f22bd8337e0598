"""Which operators count as lowered in the same way, so that their alternatives are found once."""

import numpy as np

from dfcompile.lowering.alternatives.known import known_alternatives
from tests.onnx_nodes import TABLE
from tests.onnx_text import program_from_text

TEXT = """g (uint8[2,70] x, uint8[2,70] y) => (int32[2,70] p, int32[2,70] q, int32[2,70] r) {
    p = MatMulInteger(x, a)
    q = MatMulInteger(y, b)
    r = MatMulInteger(x, c)
}"""


def test_weights_of_a_byte_count_as_the_same_unless_only_some_are_all_zero() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-9, 9, (70, 70)).astype(np.int8) for _ in range(2))
    program = program_from_text(TEXT, a=a, b=b, c=np.zeros((70, 70), np.int8))

    first, second, zero = known_alternatives(program, TABLE).operators

    assert first.expansions is second.expansions
    assert first.expansions is not zero.expansions

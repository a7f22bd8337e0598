"""Shapes that operands are broadcast to, however many elements they have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.lowering import lower_to_canonical, registered_expansions
from dfcompile.lowering.operators.elements import broadcast_shape
from tests.onnx_text import program_from_text

shapes = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=3)


@given(shapes)
def test_as_numpy_has_it(given: list[tuple[int, ...]]) -> None:
    try:
        expected: tuple[int, ...] | None = np.broadcast_shapes(*given)
    except ValueError:
        expected = None

    assert broadcast_shape(given) == expected


def test_more_elements_than_numpy_counts() -> None:
    program = program_from_text("g (float[1048576,1099511627776,16] x) => (y) { y = ReduceSum<keepdims=0>(x) }")

    lowered = lower_to_canonical(program, registered_expansions(), ())

    assert lowered.name == "g"

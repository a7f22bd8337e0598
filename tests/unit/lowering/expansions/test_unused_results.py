"""Results that a model names and nobody reads are not computed; the others are right all the same."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.fuzz.oracle import Session, load
from tests.interpreter import interpret
from tests.onnx_nodes import assert_same, lowered, scopes
from tests.onnx_text import model_from_text

X = np.array([[-1, 2, 0.5], [3, 0.25, 1]], np.float32)


@pytest.mark.parametrize("used", [0, 1, 2])
@pytest.mark.parametrize(
    ("node", "types"),
    [
        ("DynamicQuantizeLinear(x)", ("uint8[2,3]", "float", "uint8")),
        ("LayerNormalization(x, s)", ("float[2,3]", "float[2,1]", "float[2,1]")),
    ],
)
def test_operator_of_which_one_result_is_used(node: str, types: Sequence[str], used: int) -> None:
    graph = f"g (float[2,3] x) => ({types[used]} y{used}) <float[3] s = {{1, 2, 3}}> {{ y0, y1, y2 = {node} }}"
    model = model_from_text(graph)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)

    found = interpret(lowered(model), {"x": X})

    assert_same(found, session.run({"x": X}).results, 1e-6, 0)


def test_rows_are_not_scaled_where_only_statistics_are_used() -> None:
    graph = "g (float[2,3] x) => (float[2,1] m) <float[3] s = {1, 2, 3}> { y, m, d = LayerNormalization(x, s) }"

    assert not [name for name in scopes(lowered(model_from_text(graph))) if name.endswith(".scale")]

"""Attention in double precision: what onnxruntime makes of its scale is excused, another factor is not."""

import numpy as np
import onnx
import pytest

from tests.fuzz.attention_differences import _is_causal_from_the_first_key, _is_scaled_in_single_precision
from tests.fuzz.disagreement import Disagreement
from tests.fuzz.draw import Array
from tests.fuzz.oracle import Session, load
from tests.onnx_text import model_from_text

SHAPES = {"q": (1, 1, 4, 3), "k": (1, 1, 4, 3), "v": (1, 1, 4, 3)}


def attention(attribute: str) -> onnx.ModelProto:
    given = ", ".join(f"double[{','.join(map(str, shape))}] {name}" for name, shape in SHAPES.items())
    model = model_from_text(
        f"g ({given}) => (double[1,1,4,3] y, double[1,1,4,4] s)"
        f" {{ y, a, b, s = Attention<{attribute}qk_matmul_output_mode=0>(q, k, v) }}"
    )
    model.opset_import[0].version = 23
    model.ir_version = 10
    return model


@pytest.mark.parametrize("attribute", ["", "scale=0.3, "])
@pytest.mark.parametrize(("factor", "is_known"), [(1, True), (1 + 1e-6, False)])
def test_scale_is_the_square_of_a_root_in_single_precision(attribute: str, factor: float, *, is_known: bool) -> None:
    model, random = attention(attribute), np.random.default_rng(1)
    q, k, v = (random.normal(0, 1000, shape) for shape in SHAPES.values())
    operands: dict[str, Array] = {"q": q, "k": k, "v": v}
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    expected = session.run(operands).results
    scale = float(np.float32(0.3)) if attribute else 1 / np.sqrt(3)
    scores = q @ np.swapaxes(k, 2, 3) * scale * factor
    assert abs(expected["s"].astype(np.float64) / scores - 1).max() > 1e-8

    weights = np.exp(scores - scores.max(-1, keepdims=True))
    found = {"y": weights / weights.sum(-1, keepdims=True) @ v, "s": scores}

    assert (
        _is_scaled_in_single_precision(Disagreement(model, model.graph.node[0], 23, operands, found, expected))
        is is_known
    )


@pytest.mark.parametrize(("factor", "is_known"), [(1, True), (2, False)])
def test_causal_over_a_part_of_the_keys(factor: int, *, is_known: bool) -> None:
    """Of four keys two are there: the first two queries attend to none, the last one to both."""
    given = ", ".join(f"double[{','.join(map(str, shape))}] {name}" for name, shape in SHAPES.items())
    model = model_from_text(
        f"g ({given}, int64[1] n) => (double[1,1,4,3] y) {{ y = Attention<is_causal=1>(q, k, v, , , , n) }}"
    )
    model.opset_import[0].version = 24
    model.ir_version = 10
    operands: dict[str, Array] = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    operands |= {"v": np.arange(12.0).reshape(1, 1, 4, 3) * factor, "n": np.array([2])}
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    expected = session.run(operands).results
    assert expected["y"][0, 0, 0].tolist() == operands["v"][0, 0, 0].tolist()

    rows = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 2], [1.5, 2.5, 3.5]])
    case = Disagreement(model, model.graph.node[0], 24, operands, {"y": rows[None, None]}, expected)

    assert _is_causal_from_the_first_key(case) is is_known

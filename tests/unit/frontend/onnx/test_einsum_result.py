"""Shapes and values of Einsum where some dimensions have the extent 1: as onnxruntime has them."""

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Node, lowered, random


def _check(equation: str, shapes: list[tuple[int, ...]]) -> None:
    node = Node("Einsum", [random(shape) for shape in shapes], attributes={"equation": equation})
    model = node.model()
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.output.append(onnx.ValueInfoProto(name="y0"))
    answer = evaluated(model, node.feeds)
    assert answer is not None

    (found,) = interpret(lowered(model), node.feeds).values()

    assert found.shape == answer[1][0].shape
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(answer[1][0], float), rtol=1e-4, atol=1e-5)


def test_label_whose_first_extent_is_one() -> None:
    _check("cb,dab->ba", [(2, 1), (2, 4, 3)])
    _check("cb,dab", [(2, 1), (2, 4, 3)])
    _check("...b,b...->...", [(2, 1, 1), (4, 2, 5)])


@examples(20)
@given(st.data())
def test_extents_of_one_go_with_any_other(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.text("abcd", min_size=1, max_size=3), min_size=1, max_size=3))
    known = sorted(set("".join(labels)))
    extents = {label: data.draw(st.integers(1, 3), label=label) for label in known}
    result = "".join(data.draw(st.permutations(known)))[: data.draw(st.integers(0, len(known)))]
    shapes = []
    for term in labels:
        thin = {label for label in set(term) if data.draw(st.booleans())}  # a diagonal has one extent
        shapes.append(tuple(1 if label in thin else extents[label] for label in term))
    _check(f"{','.join(labels)}{data.draw(st.sampled_from(['', '->' + result]))}", shapes)

"""Clip before operator set 11 has finite bounds where none are given; a Celu of alpha 0 is no function."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.opset import at_common_opset
from dfcompile.frontend.onnx.reference_evaluation import evaluate
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from tests.interpreter import interpret
from tests.onnx_nodes import Node, check_node
from tests.onnx_text import program_from_model, program_from_text

TABLE = registered_expansions()
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("opset", [7, 10])
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, [-LARGEST, 0.5, LARGEST]), ({"max": 1.0}, [-LARGEST, 0.5, 1]), ({"min": -1.0}, [-1, 0.5, LARGEST])],
)
def test_old_clip_has_finite_bounds_by_default(opset: int, given: dict[str, float], expected: list[float]) -> None:
    value = helper.make_tensor_value_info
    node = helper.make_node("Clip", ["x"], ["y"])
    node.attribute.extend(helper.make_attribute(name, bound) for name, bound in given.items())
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", TensorProto.FLOAT, [3])],
        [value("y", TensorProto.FLOAT, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    maps = lower_to_maps(lower_to_canonical(program_from_model(model), TABLE), TABLE)

    found = interpret(maps, {"x": np.array([-np.inf, 0.5, np.inf], np.float32)})["y"]

    assert found.tolist() == [np.float32(each) for each in expected]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("given", [{}, {"max": 1.0}, {"min": -1.0, "max": 1.0}])
def test_old_bounds_are_of_the_type_of_what_they_bound(dtype: str, given: dict[str, float]) -> None:
    x = np.array([-2, 0.5, 3], dtype)

    check_node(Node("Clip", [x], attributes=given, opset=9), np.clip(x, given.get("min", -9), given.get("max", 9)))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_old_padding_is_of_the_type_of_what_it_surrounds(dtype: str) -> None:
    x = np.array([1, 2], dtype)
    node = Node("Pad", [x], attributes={"pads": [1, 2], "value": 0.5}, opset=10)

    (found,) = evaluate(at_common_opset(node.model()), {"x0": x}, "reference")
    assert found.dtype == x.dtype
    assert found.tolist() == [0.5, 1, 2, 0.5, 0.5]
    onnx.shape_inference.infer_shapes(at_common_opset(node.model()), check_type=True, strict_mode=True)


def test_celu_that_divides_by_zero_is_refused() -> None:
    with pytest.raises(UserError, match="'alpha' is 0 against a number to divide by"):
        program_from_text("g (float[2] x) => (float[2] y) { y = Celu<alpha=0.0>(x) }")

"""A listed difference is told from another one, node by node; a node that cannot be run is compared all the same."""

import numpy as np
import onnx
import pytest

from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from tests.fuzz.comparison import difference
from tests.fuzz.node_by_node import reason_node_by_node
from tests.fuzz.oracle import Session, load
from tests.interpreter import interpret
from tests.onnx_text import model_from_text, program_from_model

TABLE = registered_expansions()
# The zero point of what is infinite is listed; a quotient by its 0 is refused by onnxruntime, which has 255.
GRAPH = """g (float[3] x) => (uint8[3] y) <uint8[3] c = {200, 100, 255}>
    { q, s, z = DynamicQuantizeLinear(x) y = Div(c, z) }"""
X = np.array([-np.inf, 1, 2], np.float32)


def lowered(model: onnx.ModelProto) -> Program:
    return lower_to_maps(lower_to_canonical(program_from_model(model), TABLE, ()), TABLE, ())


def lowered_with_a_fault(model: onnx.ModelProto) -> Program:
    """Return the program of a model in which every quotient is a product."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for node in other.graph.node:
        node.op_type = {"Div": "Mul"}.get(node.op_type, node.op_type)
    return lowered(other)


@pytest.mark.parametrize("is_right", [True, False])
def test_node_that_onnxruntime_refuses(*, is_right: bool) -> None:
    model = model_from_text(GRAPH)
    lower = lowered if is_right else lowered_with_a_fault
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    expected = session.run({"x": X}).results
    found = interpret(lower(model), {"x": X})
    assert difference(found, expected, model)

    assert bool(reason_node_by_node(model, {"x": X}, found, lower)) is is_right


def test_listed_difference_beside_a_result_without_elements() -> None:
    """A program has no output for a part of no elements; what onnxruntime sums up overflows."""
    model = model_from_text(
        """g (float[3,2] x, int64[2] n) => (float[1,2] a, float[0,2] b, float[2,2] c, int64[1] y)
            <int64[3] parts = {1, 0, 2}> { a, b, c = Split<axis = 0>(x, parts) y = ReduceSum(n) }"""
    )
    feeds = {"x": np.ones((3, 2), np.float32), "n": np.full(2, 2**63 - 1)}
    program = lowered(model)
    found = interpret(program, feeds)

    assert found["y"].tolist() == [-2]
    assert "overflow" in reason_node_by_node(model, feeds, found, lowered)

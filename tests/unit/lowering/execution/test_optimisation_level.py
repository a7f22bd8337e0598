"""How far a program is optimised before it runs once."""

import onnx
import pytest
from onnx import TensorProto, helper

from dfcompile.lowering.execution.compiled_run import optimisation_level
from tests.onnx_nodes import lowered


@pytest.mark.parametrize(("extent", "relus", "level"), [(16, 0, 1), (800, 0, 3), (800, 6, 1)])
def test_long_runs_are_worth_optimising_short_ones_of_many_scopes_are_not(extent: int, relus: int, level: int) -> None:
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y0"])]
    nodes += [helper.make_node("Relu", [f"y{at}"], [f"y{at + 1}"]) for at in range(relus)]
    shape = TensorProto.FLOAT, [extent, extent]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", *shape)],
        [helper.make_tensor_value_info(f"y{relus}", *shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    assert optimisation_level(lowered(onnx.shape_inference.infer_shapes(model)).sdfg) == level

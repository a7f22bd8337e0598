"""Element-wise operators in most data types that ONNX allows them, compiled all at once."""

import onnx
import pytest
from onnx import helper

from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from dfcompile.lowering.execution.compiled_run import run_program
from tests.elementwise_nodes import OPSET, name_of, nodes
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, assert_same

COMPILED_DTYPES = ("float32", "float16", "int32", "uint8", "bool")  # the compiler takes a second per fifty tasks


@pytest.mark.slow
def test_generated_code_gives_what_the_interpreter_gives() -> None:
    feeds: dict[str, Array] = {}
    graph = onnx.GraphProto(name="all")
    compiled = [node for node in nodes() if name_of(node).rpartition("-")[2] in COMPILED_DTYPES]
    for number, node in enumerate(compiled):
        model = node.model()
        rename = {value.name: f"v{number}_{value.name}" for value in (*model.graph.input, *model.graph.output)}
        for value in (*model.graph.input, *model.graph.output):
            value.name = rename[value.name]
        graph.input.extend(model.graph.input)
        graph.output.extend(model.graph.output)
        (copied,) = model.graph.node
        copied.name = f"n{number}"
        copied.input[:] = [rename[name] for name in copied.input]
        copied.output[:] = [rename[name] for name in copied.output]
        graph.node.append(copied)
        feeds |= {rename[name]: value for name, value in node.feeds.items()}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    program = lower_to_maps(lower_to_canonical(program_of("all", model, ReadOptions()), TABLE), TABLE)

    assert_same(run_program(program, feeds), interpret(program, feeds), rtol=2e-3, atol=1e-6)

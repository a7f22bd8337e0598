"""Element-wise operators in most data types that ONNX allows them, compiled all at once."""

import pytest

from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from dfcompile.lowering.execution.compiled_run import run_program
from tests.elementwise_nodes import name_of, nodes, side_by_side
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, assert_same

COMPILED_DTYPES = ("float32", "float16", "int32", "uint8", "bool")  # the compiler takes a second per fifty tasks


@pytest.mark.slow
def test_generated_code_gives_what_the_interpreter_gives() -> None:
    compiled = [node for node in nodes() if name_of(node).rpartition("-")[2] in COMPILED_DTYPES]
    model, feeds = side_by_side(compiled)
    program = lower_to_maps(lower_to_canonical(program_of("all", model, ReadOptions()), TABLE), TABLE)

    assert_same(run_program(program, feeds), interpret(program, feeds), rtol=2e-3, atol=1e-6)

"""What reads between elements, compiled as no default has it: other expansions, other data types."""

import numpy as np
import pytest

from dfcompile.lowering import Choice
from dfcompile.lowering.execution.compiled_run import run_program
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged
from tests.onnx_nodes import Node, assert_same, lowered, random

GRID = np.random.default_rng(0).uniform(-1.5, 1.5, (2, 2, 3, 2))
NODES = [
    Node("Resize", [random((1, 2, 4, 3)), None, np.array([1, 1, 2, 3], np.float32)], [2], {"mode": "linear"}, opset=20),
    Node("GridSample", [random((2, 3, 4, 5), "float16"), GRID.astype(np.float16)], opset=20),
    Node("GridSample", [random((2, 3, 4, 5), "int32"), GRID.astype("f")], attributes={"mode": "nearest"}, opset=20),
    Node("DFT", [random((2, 12, 2))], opset=20),
]
CHOICES = [
    (Choice("Sample", "images"), Choice("DFT", "fft")),
    (Choice("Resize", "matmul"), Choice("Sample", "channels")),
]


@pytest.mark.slow
@pytest.mark.parametrize("choices", CHOICES)
def test_other_expansions_compile_to_the_same(choices: tuple[Choice, ...]) -> None:
    cases = [
        NodeCase(each.op_type, each.model(), each.feeds, interpret(lowered(each.model()), each.feeds)) for each in NODES
    ]
    model, feeds, expected = merged(cases)

    assert_same(run_program(lowered(model, choices), feeds, optimised=False), expected, 4e-3, 4e-3)

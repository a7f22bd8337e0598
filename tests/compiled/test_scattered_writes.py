"""Writes at places that depend on data, and bits read as another type, compiled: what onnxruntime computes."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from dfcompile.lowering.execution.compiled_run import run_program
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged
from tests.onnx_nodes import Node, assert_same, lowered, random


def case(node: Node) -> NodeCase:
    return NodeCase(node.op_type, node.model(), node.feeds, node.reference())


def updates() -> Iterator[NodeCase]:
    """Yield a few of each reduction and data type, some of them where dimensions have extent 1."""
    for reduction in ("none", "add", "mul", "max", "min"):
        places = np.array([[1, 0], [0, -1]]) if reduction == "none" else np.array([[1, 1], [1, -1]])
        for dtype in ("float32", "float16", "int64", "uint8"):
            operands = [random((3, 2), dtype), places, random((2, 2), dtype, seed=1)]
            yield case(Node("ScatterElements", operands, attributes={"reduction": reduction}))
    for shape, within in (((1, 3), 2), ((3, 1), 1), ((1, 1), 2), ((1,), 1), ((2, 1, 3), 2)):
        places = np.array([[-1] * within])
        yield case(Node("ScatterND", [random(shape), places, random((1, *shape[within:]), seed=1)]))


@pytest.mark.slow
def test_scattered_writes() -> None:
    model, feeds, expected = merged(list(updates()))
    program = lowered(onnx.shape_inference.infer_shapes(model))

    assert_same(interpret(program, feeds), expected, 2e-3, 0)
    assert_same(run_program(program, feeds, optimised=False), expected, 2e-3, 0)


@pytest.mark.slow
def test_bits_as_another_type() -> None:
    x = random((2, 3))
    nodes = [Node("BitCast", [x], attributes={"to": to}, opset=26) for to in (6, 12)]
    cases = [
        NodeCase("b", node.model(), node.feeds, {"y0": x.view(to)})
        for node, to in zip(nodes, ("i4", "u4"), strict=True)
    ]
    model, feeds, expected = merged(cases)

    assert_same(run_program(lowered(model), feeds, optimised=False), expected, 0, 0)

"""Lookups in tables with dimensions of extent 1, compiled: a tasklet does not see such a dimension."""

import numpy as np
import onnx
import pytest

from dfcompile.lowering.execution.compiled_run import run_program
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged
from tests.onnx_nodes import Array, Node, assert_same, lowered, random

TABLES = [((1, 3), 1), ((3, 1), 0), ((1, 1), 0), ((1,), 0), ((2, 1, 3), 2)]


def case(node: Node, expected: Array) -> NodeCase:
    return NodeCase(node.op_type, node.model(), node.feeds, {"y0": expected})


def lookups(shape: tuple[int, ...], axis: int) -> list[NodeCase]:
    """Return a Gather and a GatherElements of the last place, counted from either end."""
    x, places = random(shape), np.array([shape[axis] - 1, -1])
    along = np.broadcast_to(
        places.reshape([-1 if at == axis else 1 for at in range(len(shape))]), [*shape[:axis], 2, *shape[axis + 1 :]]
    )
    attributes = {"axis": axis}
    expected = np.take(x, places, axis)
    return [
        case(Node("Gather", [x, places], attributes=attributes), expected),
        case(Node("GatherElements", [x, along], attributes=attributes), expected),
    ]


@pytest.mark.slow
def test_lookups_in_narrow_tables() -> None:
    model, feeds, expected = merged([one for shape, axis in TABLES for one in lookups(shape, axis)])
    program = lowered(onnx.shape_inference.infer_shapes(model))

    assert_same(interpret(program, feeds), expected, 0, 0)
    assert_same(run_program(program, feeds, optimised=False), expected, 0, 0)

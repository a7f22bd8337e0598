"""Cutting the state of a lowered program: what it computes afterwards, and in how large states."""

from itertools import pairwise

import dace
import numpy as np
import pytest
from dace.sdfg.nodes import MapEntry
from onnx import TensorProto, checker, helper
from onnx.numpy_helper import from_array

from dfcompile.frontend import Program
from dfcompile.lowering.execution.compiled_form import cut_state
from dfcompile.records import replace
from tests.interpreter import interpret
from tests.onnx_nodes import assert_same, lowered, random

FEEDS = {"x": random((2, 3, 8, 8)), "y": random((2, 192), seed=1)}


def branching() -> Program:
    """Return two branches of convolutions, joined; a part of the sum with what another input is, seen flat."""
    weights = {"v": random((3, 3, 3, 3), seed=2), "w": random((3, 3, 1, 1), seed=3), "flat": np.array([2, 192])}
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "w"], ["b"]),
        helper.make_node("Relu", ["a"], ["c"]),
        helper.make_node("Concat", ["b", "c"], ["d"], axis=1),
        helper.make_node("Split", ["d"], ["e", "f"], axis=1, num_outputs=2),
        helper.make_node("Reshape", ["e", "flat"], ["g"]),
        helper.make_node("Add", ["g", "y"], ["h"]),
        helper.make_node("Softmax", ["h"], ["i"]),
        helper.make_node("Mul", ["i", "g"], ["j"]),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in FEEDS.items()],
        [
            helper.make_tensor_value_info(*each)
            for each in (("j", TensorProto.FLOAT, [2, 192]), ("f", TensorProto.FLOAT, [2, 3, 8, 8]))
        ],
        [from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    checker.check_model(model)
    return lowered(model)


@pytest.mark.parametrize("units", [1, 2, 3, 7])
def test_a_cut_program_computes_the_same(units: int) -> None:
    program = branching()
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    cut_state(sdfg, units)
    sdfg.validate()
    sizes = [sum(isinstance(node, MapEntry) for node in state.nodes()) for state in sdfg.nodes()]

    assert max(sizes) == units
    assert sum(sizes) == sum(isinstance(node, MapEntry) for node in program.sdfg.nodes()[0].nodes())
    assert len(sizes) == -(-sum(sizes) // units)
    assert_same(interpret(replace(program, sdfg=sdfg), FEEDS), interpret(program, FEEDS), 0, 0)


def test_a_small_program_stays_one_state() -> None:
    sdfg = branching().sdfg
    cut_state(sdfg, 1000)

    assert len(sdfg.nodes()) == 1


def copies(length: int) -> dace.SDFG:
    """Return a program that copies an array from one to the next."""
    sdfg = dace.SDFG("copies")
    state = sdfg.add_state()
    for number in range(length + 1):
        sdfg.add_array(f"a{number}", [4], dace.float32, transient=0 < number < length)
    nodes = [state.add_access(f"a{number}") for number in range(length + 1)]
    for source, target in pairwise(nodes):
        state.add_nedge(source, target, dace.Memlet(f"{source.data}[0:4]"))
    return sdfg


def test_copies_from_array_to_array_are_units_as_well() -> None:
    sdfg = copies(5)
    cut_state(sdfg, 2)
    sdfg.validate()

    found = [[(edge.src.data, edge.dst.data) for edge in state.edges()] for state in sdfg.nodes()]
    assert found == [[("a0", "a1"), ("a1", "a2")], [("a2", "a3"), ("a3", "a4")], [("a4", "a5")]]


def test_a_program_with_control_flow_stays() -> None:
    sdfg = copies(5)
    sdfg.add_state_after(sdfg.nodes()[0])
    cut_state(sdfg, 2)

    assert [state.number_of_edges() for state in sdfg.nodes()] == [5, 0]


def test_units_that_hang_together_are_not_cut() -> None:
    sdfg = copies(5)
    (state,) = sdfg.nodes()
    first, second = (state.add_tasklet(name, {}, {}, "pass", side_effects=True) for name in ("first", "second"))
    state.add_nedge(first, second, dace.Memlet())
    cut_state(sdfg, 1)

    assert sdfg.nodes() == [state]


def test_a_view_that_is_written_through_is_not_cut() -> None:
    sdfg = copies(3)
    (state,) = sdfg.nodes()
    sdfg.add_view("shown", [2, 2], dace.float32)
    sdfg.add_array("b", [4], dace.float32)
    view = state.add_access("shown")
    tasklet = state.add_tasklet("one", {}, {"out"}, "out = 1", side_effects=True)
    state.add_edge(tasklet, "out", view, None, dace.Memlet("shown[0, 0]"))
    state.add_edge(view, "views", state.add_access("b"), None, dace.Memlet("b[0:4]"))
    cut_state(sdfg, 1)

    assert sdfg.nodes() == [state]

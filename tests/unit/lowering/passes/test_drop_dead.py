import dace
import numpy as np

from dfcompile.frontend import CANONICAL, Coverage, ModelNode, OperatorNode, Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.unneeded import drop_dead
from dfcompile.records import replace
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, random
from tests.onnx_text import program_from_text

GRAPH = "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Neg(t) }"


def with_dead_branch() -> Program:
    """Return a program of which a branch ``w -> Abs -> view -> Abs`` of operator ``unused`` leads nowhere."""
    program = lower_to_canonical(program_from_text(GRAPH), TABLE)
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    state = sdfg.start_state
    sdfg.add_array("w", [6], dace.float32)
    source = state.add_access("w")
    for name, shape in (("dead0", [6]), ("dead1", [2, 3])):
        sdfg.add_array(name, shape, dace.float32, transient=True)
        attributes = {"expression": "abs(a)"}
        node = OperatorNode(
            name, dialect=CANONICAL, op_type="Elementwise", origin="unused", attributes=attributes,
            inputs=["in_0"], outputs=["out_0"],
        )  # fmt: skip
        state.add_node(node)
        state.add_edge(source, None, node, "in_0", dace.Memlet.from_array(source.data, sdfg.arrays[source.data]))
        written = state.add_access(name)
        state.add_edge(node, "out_0", written, None, dace.Memlet.from_array(name, sdfg.arrays[name]))
        if name == "dead0":
            sdfg.add_view("seen", [2, 3], dace.float32)
            source = state.add_access("seen")
            state.add_edge(written, None, source, "views", dace.Memlet.from_array(name, sdfg.arrays[name]))
    parameters = {**program.parameters, "w": np.zeros(6, np.float32)}
    nodes = (*program.nodes, ModelNode("unused", "Abs", Coverage.COSTED))
    return replace(program, sdfg=sdfg, parameters=parameters, nodes=nodes)


def test_dead_branch_goes_with_its_views_and_parameters() -> None:
    program = apply_passes(with_dead_branch(), [drop_dead])
    origins = [node.origin for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode)]

    assert "unused" not in origins
    assert len(origins) == 2
    assert not program.parameters
    assert not {"w", "dead0", "dead1", "seen"} & set(program.sdfg.arrays)
    assert program.nodes[-1].coverage is Coverage.FOLDED
    assert program.nodes[0].coverage is Coverage.COSTED


def test_results_stay_the_same() -> None:
    value = random((2, 3))
    program = apply_passes(with_dead_branch(), [drop_dead])
    found = interpret(lower_to_maps(program, TABLE), {"x": value})["y"].astype(np.float32)

    np.testing.assert_allclose(found, -np.exp(value), rtol=1e-6)


def test_program_without_dead_operators_is_returned_itself() -> None:
    program = lower_to_canonical(program_from_text(GRAPH), TABLE)

    assert apply_passes(program, [drop_dead]) is program

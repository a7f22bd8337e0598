"""The rewriter of programs: what it says of a graph, and what becomes of a graph that it changes."""

import numpy as np
import pytest

from dfcompile.errors import VerificationError
from dfcompile.frontend import Coverage, Level, Program
from dfcompile.frontend.sdfg.operator_node import OperatorNode
from dfcompile.lowering import Operator, ProgramRewriter, apply_passes, lower_to_canonical, lower_to_maps, lowering_pass
from dfcompile.lowering.operators import Elementwise
from dfcompile.lowering.program_nodes import onnx_operators
from dfcompile.records import replace
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, random
from tests.onnx_text import program_from_text

FORK = "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) u = Neg(t) v = Abs(t) y = Mul(u, v) }"
VIEW = "g (float[2,3] x) => (float[6] y) { t = Exp(x) v = Reshape(t, s) y = Neg(v) }"


def canonical(graph: str, **parameters: np.ndarray) -> Program:
    return lower_to_canonical(program_from_text(graph, **parameters), TABLE)


def results(program: Program) -> np.ndarray:
    return interpret(lower_to_maps(program, TABLE), {"x": random((2, 3))})["y"]


def expressions(program: Program) -> list[str]:
    return [elementwise(op).expression for op in ProgramRewriter(program).operators()]


def elementwise(op: Operator) -> Elementwise:
    found = op.canonical(Elementwise)
    assert found is not None
    return found


@lowering_pass("recompute", level=Level.CANONICAL, source="test")
def recompute(program: Program, *, readers: int = 2) -> Program:
    """Compute an element-wise result once for each operator that reads it, up to a number of readers."""
    graph = ProgramRewriter(program)
    for op in graph.operators():
        result = op.output()
        users = graph.readers(result)
        if op.op_type != "Elementwise" or not graph.is_internal(result) or not 2 <= len(users) <= readers:
            continue
        for number, user in enumerate(users[1:], 1):
            copy = graph.add_tensor(f"{result.name}_{number}", result.shape, result.dtype)
            graph.insert(elementwise(op), f"{op.name}.{number}", op.inputs, [copy], origin=op.origin)
            graph.rewire(result, copy, [user])
    return graph.finish()


def test_operators_come_in_order_with_their_tensors() -> None:
    graph = ProgramRewriter(canonical(FORK))
    first, second, third, last = graph.operators()
    between = first.output()

    assert [elementwise(op).expression for op in (first, last)] == ["exp(a)", "a * b"]
    assert [op.name for op in graph.readers(between)] == [second.name, third.name]
    producer = graph.producer(between)
    assert producer is not None
    assert producer.name == first.name
    assert graph.producer(first.input(0)) is None
    assert graph.is_internal(between)
    assert graph.is_used(between)
    assert not graph.is_internal(last.output())
    assert [tensor.name for tensor in graph.intermediates()] == [op.output().name for op in (first, second, third)]


def test_views_are_seen_and_are_no_operators() -> None:
    graph = ProgramRewriter(canonical(VIEW, s=np.array([6])))
    first, last = graph.operators()
    (view,) = graph.views(first.output())

    assert view.shape == (6,)
    assert [op.name for op in graph.readers(view)] == [last.name]
    assert graph.readers(first.output()) == ()
    assert graph.is_used(first.output())
    assert not graph.is_internal(first.output())
    viewed = graph.viewed(view)
    assert viewed is not None
    assert viewed.name == first.output().name
    assert graph.viewed(first.output()) is None


def test_a_program_that_nobody_changes_is_returned_itself() -> None:
    program = canonical(FORK)
    graph = ProgramRewriter(program)
    graph.remove_unused_views()

    assert graph.finish() is program


def test_insert_and_rewire_give_each_reader_its_own() -> None:
    program = canonical(FORK)
    before = expressions(program)
    changed = apply_passes(program, [recompute])

    assert expressions(program) == before
    assert sorted(expressions(changed)) == sorted([*before, "exp(a)"])
    np.testing.assert_array_equal(results(changed), results(program))
    assert apply_passes(changed, [recompute]) is changed


def test_the_same_bytes_each_time() -> None:
    program = canonical(FORK)
    first, second = (apply_passes(program, [recompute]).sdfg for _ in range(2))

    assert str(first.to_json()["nodes"]) == str(second.to_json()["nodes"])
    assert [node.guid for node in first.start_state.nodes()] == [node.guid for node in second.start_state.nodes()]


def test_replace_keeps_the_results_and_the_name() -> None:
    program = canonical(FORK)
    graph = ProgramRewriter(program)
    last = graph.operators()[-1]
    new = graph.replace(last, operator=replace(elementwise(last), expression="a * b + 1"))
    changed = graph.finish()

    assert new.name == last.name
    assert [tensor.name for tensor in new.operands()] == [tensor.name for tensor in last.operands()]
    np.testing.assert_allclose(results(changed), results(program) + 1)


def test_operators_are_of_the_level_of_the_program() -> None:
    graph = ProgramRewriter(canonical(FORK))
    first, *_, last = graph.operators()
    with pytest.raises(VerificationError, match=r"operator 'Abs': type and attributes against a canonical one"):
        graph.insert("Abs", "new", [first.output()], [graph.add_tensor("new", (2, 3), "float32")], origin="new")
    with pytest.raises(VerificationError, match="operator 'Elementwise': type and attributes against a canonical one"):
        graph.replace(last, attributes={"expresion": "a"})
    with pytest.raises(VerificationError, match="field 'expression' is 'a \\+ c' with 'c' against operands"):
        graph.replace(last, operator=Elementwise("a + c"))
    onnx = ProgramRewriter(program_from_text(FORK))
    with pytest.raises(VerificationError, match="a canonical one against a type of ONNX and attributes"):
        onnx.replace(onnx.operators()[0], operator=Elementwise("a"))
    assert onnx.replace(onnx.operators()[0], operator="Log").op_type == "Log"


def test_what_somebody_else_sees_cannot_vanish() -> None:
    graph = ProgramRewriter(canonical(FORK))
    first, second, third, last = graph.operators()
    with pytest.raises(
        VerificationError, match=rf"'{first.output().name}' would vanish, which operator '{third.name}'"
    ):
        graph.replace(first, second)
    with pytest.raises(VerificationError, match=f"its result '{first.output().name}' is used"):
        graph.remove(first)
    with pytest.raises(VerificationError, match="'y' is written already"):
        graph.insert(Elementwise("a"), "new", [first.output()], [last.output()], origin="new")
    with pytest.raises(VerificationError, match="added twice"):
        graph.insert(Elementwise("a"), last.name, [], [], origin="new")


def test_rewire_asks_for_the_same_shape() -> None:
    graph = ProgramRewriter(canonical(FORK))
    first = graph.operators()[0]
    other = graph.add_tensor("other", (3, 2), "float32")
    with pytest.raises(VerificationError, match=r"tensor 'other': float32\[3,2\] against float32\[2,3\] of"):
        graph.rewire(first.output(), other)


def test_a_removed_operator_takes_its_views_and_parameters_with_it() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { t = Add(x, w) v = Reshape(t, s) y = Exp(x) }"
    program = canonical(graph, s=np.array([6]), w=random((2, 3)))
    rewriter = ProgramRewriter(program)
    for op in reversed(rewriter.operators()):
        if not any(rewriter.is_used(tensor) for tensor in op.outputs if tensor is not None):
            rewriter.remove(op)
    changed = rewriter.finish()

    assert expressions(changed) == ["exp(a)"]
    assert not changed.parameters
    assert set(changed.sdfg.arrays) == {"x", "y"}
    assert {node.coverage for node in changed.nodes if node.op_type == "Add"} <= {Coverage.FOLDED}


def test_a_parameter_can_be_added() -> None:
    program = canonical(FORK)
    graph = ProgramRewriter(program)
    last = graph.operators()[-1]
    scale = graph.add_parameter("x", np.full((2, 3), 3, np.float32))  # a name that is taken
    graph.replace(last, inputs=[*last.inputs, scale], operator=Elementwise("a * b * c"))
    changed = graph.finish()

    assert scale.name != "x"
    np.testing.assert_allclose(results(changed), 3 * results(program), rtol=1e-6)


def test_a_program_of_map_scopes_has_no_operators() -> None:
    with pytest.raises(VerificationError, match="level MAPS against one with operators"):
        ProgramRewriter(lower_to_maps(canonical(FORK), TABLE))


@lowering_pass("renamed", level=Level.CANONICAL, source="test")
def renamed(program: Program) -> Program:
    """Change the graph itself, as transformations of DaCe do."""
    for node in program.sdfg.start_state.nodes():
        if isinstance(node, OperatorNode):
            node.origin = "renamed"
    return program


def test_a_pass_may_change_the_graph_of_a_program_that_was_read() -> None:
    program = canonical(FORK)
    assert "renamed" not in [op.origin for op in onnx_operators(program)]

    apply_passes(program, (renamed,))

    assert {op.origin for op in onnx_operators(program)} == {"renamed"}

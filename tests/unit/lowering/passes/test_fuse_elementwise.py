import numpy as np
import pytest

from dfcompile.frontend import AppliedPass, Coverage, OperatorNode, Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, random
from tests.onnx_text import program_from_text


def canonical(graph: str, **parameters: Array) -> Program:
    return lower_to_canonical(program_from_text(graph, **parameters), TABLE)


def elementwise(program: Program) -> list[OperatorNode]:
    return [node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode)]


def check_same(program: Program, inputs: dict[str, Array]) -> list[OperatorNode]:
    """Check that the pass changes no number; return what is left."""
    fused = apply_passes(program, [fuse_elementwise])
    before, after = (interpret(lower_to_maps(each, TABLE), inputs) for each in (program, fused))
    for name, value in before.items():
        np.testing.assert_allclose(after[name].astype(np.float64), value.astype(np.float64), rtol=1e-6)
    assert apply_passes(fused, [fuse_elementwise]) is fused
    return elementwise(fused)


def test_chain_becomes_its_last_operator() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { t = Exp(x) u = Neg(t) y = Abs(u) }")
    (left,) = check_same(program, {"x": random((2, 3))})

    assert left.attributes["expression"] == "abs(-exp(a))"
    assert left.origin == program.nodes[-1].name
    assert [node.coverage for node in program.nodes] == [Coverage.COSTED] * 3


def test_program_is_returned_itself_if_nothing_can_be_joined() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { y = Exp(x) }")

    assert apply_passes(program, [fuse_elementwise]) is program


def test_the_program_given_is_not_changed() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Neg(t) }")
    before = program.sdfg.to_json()
    fuse_elementwise.rewrite(program)

    assert len(elementwise(program)) == 2
    assert str(program.sdfg.to_json()["nodes"]) == str(before["nodes"])


def test_operand_of_both_is_read_once() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { t = Sigmoid(x) y = Mul(x, t) }")
    (left,) = check_same(program, {"x": random((2, 3))})

    assert sorted(left.in_connectors) == ["in_0"]


def test_operand_that_is_used_twice_by_one_consumer() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Mul(t, t) }")

    assert len(check_same(program, {"x": random((2, 3))})) == 1


def test_broadcast_operands_keep_their_axes() -> None:
    graph = "g (float[2,1,4] x, float[3,1] z) => (float[2,3,4] y) { t = Add(x, z) u = Mul(t, w) y = Sub(u, z) }"
    inputs: dict[str, Array] = {"x": random((2, 1, 4)), "z": random((3, 1), seed=1)}
    (left,) = check_same(canonical(graph, w=random((4,), seed=2)), inputs)

    assert left.attributes["axes"] == [[0, 1, 2], [1, 2], [2]]


def test_result_that_is_broadcast_is_not_computed_again_and_again() -> None:
    graph = "g (float[3] x, float[2,3] z) => (float[2,3] y) { t = Exp(x) y = Add(t, z) }"

    assert len(check_same(canonical(graph), {"x": random((3,)), "z": random((2, 3), seed=1)})) == 2


@pytest.mark.parametrize("graph", [
    "g (float[2,3] x) => (float[2,3] y, float[2,3] t) { t = Exp(x) y = Neg(t) }",
    "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { t = Exp(x) y = Neg(t) z = Abs(t) }",
    "g (float[2,3] x) => (float[6] y) { t = Exp(x) u = Reshape(t, s) y = Neg(u) }",
])  # fmt: skip
def test_result_that_others_see_stays(graph: str) -> None:
    parameters: dict[str, Array] = {"s": np.array([6])} if "Reshape" in graph else {}
    operators = elementwise(canonical(graph, **parameters))

    assert len(check_same(canonical(graph, **parameters), {"x": random((2, 3))})) == len(operators)


def test_integers_wrap_around_and_conversions_happen_in_between() -> None:
    graph = (
        "g (uint8[4] x, uint8[4] z) => (float[4] y) { t = Add(x, z) u = Div(t, z) v = Cast <to = 1> (u) y = Div(v, w) }"
    )
    inputs: dict[str, Array] = {"x": np.array([250, 7, 9, 200], np.uint8), "z": np.array([10, 2, 4, 100], np.uint8)}
    program = canonical(graph, w=np.array([2.0], np.float32))
    (left,) = check_same(program, inputs)
    fused = lower_to_maps(apply_passes(program, [fuse_elementwise]), TABLE)

    assert str(left.attributes["expression"]).count("dace.uint8") == 2
    assert interpret(fused, inputs)["y"].tolist() == [0.0, 2.0, 1.5, 0.0]


def test_program_says_what_passes_did() -> None:
    program = canonical("g (float[2,3] x) => (float[2,3] y) { t = Exp(x) u = Neg(t) y = Abs(u) }")
    fused = apply_passes(program, [fuse_elementwise, fuse_elementwise])

    assert fused.applied == (AppliedPass("fuse-elementwise", 3, 1),)
    assert lower_to_maps(fused, TABLE).applied == fused.applied

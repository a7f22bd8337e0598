import numpy as np

from dfcompile.frontend import OperatorNode, Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.unneeded import common_subexpressions
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, random
from tests.onnx_text import program_from_text


def check_same(graph: str, inputs: dict[str, Array], **parameters: Array) -> tuple[int, int]:
    """Check that the pass changes no number and finds everything at once; return how many operators there are."""
    program = lower_to_canonical(program_from_text(graph, **parameters), TABLE)
    merged = apply_passes(program, [common_subexpressions])
    before, after = (interpret(lower_to_maps(each, TABLE), inputs) for each in (program, merged))
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    assert apply_passes(merged, [common_subexpressions]) is merged
    return count(program), count(merged)


def count(program: Program) -> int:
    return sum(isinstance(node, OperatorNode) for node in program.sdfg.start_state.nodes())


def test_equal_branches_become_one() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) u = Exp(x) v = Neg(t) w = Neg(u) y = Mul(v, w) }"

    assert check_same(graph, {"x": random((2, 3))}) == (5, 3)


def test_parameters_of_the_same_content_are_equal() -> None:
    graph = "g (float[2,3] x) => (float[2,4] y) { t = MatMul(x, w) u = MatMul(x, v) y = Mul(t, u) }"
    weights = random((3, 4), seed=1)

    assert check_same(graph, {"x": random((2, 3))}, w=weights, v=weights.copy()) == (3, 2)
    assert check_same(graph, {"x": random((2, 3))}, w=weights, v=weights + np.float32(1)) == (3, 3)


def test_what_is_seen_through_views_of_one_array_is_equal() -> None:
    graph = (
        "g (float[2,3] x) => (float[6] y) { a = Neg(x) t = Reshape(a, s) u = Reshape(a, s) v = Exp(t) w = Exp(u) "
        "y = Mul(v, w) }"
    )

    assert check_same(graph, {"x": random((2, 3))}, s=np.array([6])) == (4, 3)


def test_other_attributes_are_another_operator() -> None:
    graph = (
        "g (float[2,3] x) => (float[2,3] y) { t = LeakyRelu<alpha=0.1>(x) u = LeakyRelu<alpha=0.2>(x) y = Mul(t, u) }"
    )

    assert check_same(graph, {"x": random((2, 3))}) == (3, 3)


def test_outputs_stay() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Exp(x) z = Exp(x) }"

    assert check_same(graph, {"x": random((2, 3))}) == (2, 2)


def test_operand_order_matters() -> None:
    graph = "g (float[2,3] x, float[2,3] z) => (float[2,3] y) { t = Sub(x, z) u = Sub(z, x) y = Mul(t, u) }"

    assert check_same(graph, {"x": random((2, 3)), "z": random((2, 3), seed=1)}) == (3, 3)

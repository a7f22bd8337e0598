import numpy as np
import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import OperatorNode, Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.fuse_elementwise import fuse_reductions
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, random
from tests.onnx_text import program_from_text


def check_same(graph: str, inputs: dict[str, Array], **parameters: Array) -> list[OperatorNode]:
    """Check that the pass changes no number; return what is left."""
    program = lower_to_canonical(program_from_text(graph, **parameters), TABLE)
    fused = apply_passes(program, [fuse_reductions])
    before, after = (interpret(lower_to_maps(each, TABLE), inputs) for each in (program, fused))
    for name, value in before.items():
        np.testing.assert_allclose(after[name].astype(np.float64), value.astype(np.float64), rtol=1e-6)
    assert apply_passes(fused, [fuse_reductions]) is fused
    return operators(fused)


def operators(program: Program) -> list[OperatorNode]:
    return [node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode)]


def test_chain_is_computed_as_it_is_reduced() -> None:
    graph = "g (float[2,3] x) => (float[2,1] y) { t = Exp(x) u = Neg(t) y = ReduceSum(u, axes) }"
    (left,) = check_same(graph, {"x": random((2, 3))}, axes=np.array([1]))

    assert left.attributes["expression"] == "-exp(a)"


def test_operands_are_broadcast_within_the_reduction() -> None:
    graph = "g (float[2,3] x, float[3] z) => (float[2,1] y) { t = Sub(x, z) y = ReduceMax(t, axes) }"
    inputs: dict[str, Array] = {"x": random((2, 3)), "z": random((3,), seed=1)}

    assert len(check_same(graph, inputs, axes=np.array([1]))) == 1


@pytest.mark.parametrize("graph", [
    "g (float[2,3] x) => (float[2,1] y, float[2,3] t) { t = Exp(x) y = ReduceSum(t, axes) }",
    "g (float[2,3] x) => (float[2,1] y, float[2,3] z) { t = Exp(x) y = ReduceSum(t, axes) z = Neg(t) }",
    "g (float[2,3] x) => (float[1] y) { t = Exp(x) u = Reshape(t, six) y = ReduceSum(u, zero) }",
])  # fmt: skip
def test_what_somebody_else_sees_stays(graph: str) -> None:
    parameters = {"axes": np.array([1]), "six": np.array([6]), "zero": np.array([0])}
    used = {name: value for name, value in parameters.items() if name in graph}
    program = lower_to_canonical(program_from_text(graph, **used), TABLE)

    assert apply_passes(program, [fuse_reductions]) is program


def test_truth_values_are_counted_as_stored() -> None:
    graph = (
        "g (int32[2,3] x) => (int32[2,1] y) { t = Cast<to=2>(x) u = Cast<to=6>(t) y = ReduceSum(u, axes) }"
    )  # fmt: skip
    left = check_same(graph, {"x": np.array([[300, -1, 5], [7, 256, 2]], np.int32)}, axes=np.array([1]))

    assert len(left) == 1


def test_operands_that_the_user_limits() -> None:
    graph = "g (float[2,3] x, float[2,3] z) => (float[2,1] y) { t = Sub(x, z) y = ReduceSum(t, axes) }"
    program = lower_to_canonical(program_from_text(graph, axes=np.array([1])), TABLE)

    assert fuse_reductions.rewrite(program, max=1) is program
    with pytest.raises(UserError, match="option 'max': found 0 against 1 to 26 operands"):
        fuse_reductions.rewrite(program, max=0)

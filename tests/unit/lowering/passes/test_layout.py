import numpy as np
import pytest

from dfcompile.frontend import OperatorNode, Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.layout import layout
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, random
from tests.onnx_text import program_from_text


def check_same(graph: str, inputs: dict[str, Array], **parameters: Array) -> list[str]:
    """Check that the pass changes no number; return the types of the operators that are left."""
    program = lower_to_canonical(program_from_text(graph, **parameters), TABLE)
    changed = apply_passes(program, [layout])
    before, after = (interpret(lower_to_maps(each, TABLE), inputs) for each in (program, changed))
    for name, value in before.items():
        np.testing.assert_allclose(after[name].astype(np.float64), value.astype(np.float64), rtol=1e-5)
    assert apply_passes(changed, [layout]) is changed
    return types(changed)


def types(program: Program) -> list[str]:
    return sorted(node.op_type for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))


def test_weights_are_stored_as_they_are_read() -> None:
    graph = "g (float[2,3] x) => (float[2,4] y) { y = Gemm<transB=1>(x, w) }"

    assert "Copy" not in check_same(graph, {"x": random((2, 3))}, w=random((4, 3), seed=1))


@pytest.mark.parametrize("permutation", [[1, 0, 2], [2, 0, 1], [2, 1, 0]])
def test_elementwise_operators_read_in_the_order_of_their_result(permutation: list[int]) -> None:
    shape = tuple([2, 3, 4][axis] for axis in permutation)
    extents = ",".join(map(str, shape))
    body = f"t = Transpose<perm={permutation}>(x) y = Sub(z, t)"
    graph = f"g (float[2,3,4] x, float[{extents}] z) => (float[{extents}] y) {{ {body} }}"
    inputs: dict[str, Array] = {"x": random((2, 3, 4)), "z": random(shape, seed=1)}

    assert check_same(graph, inputs) == ["Elementwise"]


@pytest.mark.parametrize(("graph", "left"), [
    ("t = Transpose<perm=[0,2,1]>(x) y = MatMul(t, z)", ["MatMul"]),
    ("t = Transpose<perm=[1,0,2]>(x) y = MatMul(t, w)", ["Copy", "MatMul"]),
])  # fmt: skip
def test_products_exchange_their_last_two_axes_alone(graph: str, left: list[str]) -> None:
    wide = "float[2,3,5] z" if "z)" in graph else "float[2,4,5] z, float[4,5] w"
    shape = "2,4,5" if "z)" in graph else "3,2,5"
    inputs: dict[str, Array] = {"x": random((2, 3, 4)), "z": random((2, 3, 5), seed=1)}
    if "w)" in graph:
        inputs = {"x": random((2, 3, 4)), "z": random((2, 4, 5), seed=1), "w": random((4, 5), seed=2)}

    assert check_same(f"g (float[2,3,4] x, {wide}) => (float[{shape}] y) {{ {graph} }}", inputs) == left


def test_copies_of_copies_are_made_once() -> None:
    graph = (
        "g (float[2,3,4] x) => (float[3,4,2] y) "
        "{ t = Transpose<perm=[2,0,1]>(x) u = Transpose<perm=[0,2,1]>(t) y = Transpose<perm=[1,0,2]>(u) }"
    )

    assert check_same(graph, {"x": random((2, 3, 4))}) == ["Copy"]


def test_what_another_operator_reads_is_made() -> None:
    graph = "g (float[2,3] x) => (float[3,2] y, float[3,1] z) { t = Transpose(x) y = Exp(t) z = ReduceSum(t, axes) }"

    assert "Copy" in check_same(graph, {"x": random((2, 3))}, axes=np.array([1]))

"""CumSum, GatherElements and OneHot: what is read or written depends on positions."""

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.lowering import lower_to_canonical
from tests.onnx_nodes import TABLE, Node, check_node, lowered, random
from tests.onnx_text import program_from_text


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative_sum(axis: int, exclusive: int, reverse: int) -> None:
    attributes = {"exclusive": exclusive, "reverse": reverse}

    check_node(Node("CumSum", [random((2, 3, 4)), np.array(axis)], constants=[1], attributes=attributes))


def test_cumulative_sum_of_an_infinity_stays_out_of_what_comes_before() -> None:
    check_node(Node("CumSum", [np.array([1, 2, np.inf, 3], np.float32), np.array(0)], constants=[1]))


def test_cumulative_sum_reads_the_data_once_per_result() -> None:
    dag = extract(lowered(Node("CumSum", [random((2, 5)), np.array(1)], constants=[1]).model()).sdfg)

    assert dag.tasks_count == 1
    assert dag.edge_volume.tolist() == [50, 50, 10]  # data, triangle, result


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_at_computed_indices(axis: int) -> None:
    shape = [3, 4, 5]
    shape[axis] = 2
    indices = np.random.default_rng(0).integers(-3, 3, shape)

    check_node(Node("GatherElements", [random((3, 4, 5)), indices], attributes={"axis": axis}))


def test_elements_at_constant_indices_out_of_range_are_refused() -> None:
    node = Node("GatherElements", [random((3, 4)), np.array([[3, 0]])], constants=[1])

    with pytest.raises(UserError, match="index 3 against 3 elements of axis 0 of 'x0'"):
        lowered(node.model())


def test_more_indices_than_data_in_another_dimension_are_refused() -> None:
    node = Node("GatherElements", [random((3, 4)), np.zeros((1, 5), np.int64)])

    with pytest.raises(UserError, match="'x1' is 1×5 against 3×4 of 'x0'"):
        lowered(node.model())


@pytest.mark.parametrize("values", [(1, 2), (1,)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int, values: tuple[int, ...]) -> None:
    operands = [np.array([[1, -2, 7], [4, 0, -9]]), np.array(5), np.array([2.5, -1], np.float32)]

    check_node(Node("OneHot", operands, constants=values, attributes={"axis": axis}))


def test_one_hot_of_unsigned_indices() -> None:
    operands = [np.array([1, 3, 255], np.uint8), np.array(4), np.array([5, 7], np.int8)]

    check_node(Node("OneHot", operands, constants=[1, 2]))


@pytest.mark.parametrize(
    "body",
    [
        "[op] y = ArgMax<axis=0>(x)",
        "[op] y = CumSum(x, zero)",
        "[op] y = OneHot(i, depth, two)",
        "[op] y = Trilu(m)",
    ],
)
def test_constants_that_fit_no_memory_are_not_made(body: str) -> None:
    text = f"g (float[1000000000] x, int64[2] i, float[1000000,1000000] m) => (y) {{ {body} }}"
    program = program_from_text(text, zero=np.array(0), depth=np.array(10**9), two=np.zeros(2))

    with pytest.raises(UnsupportedOpError, match=r"node 'op': .* needs a constant of 10+ elements against at most"):
        lower_to_canonical(program, TABLE)

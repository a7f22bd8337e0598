"""Reductions, softmax and positions of extrema against ONNX's reference implementation."""

from math import isqrt, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UserError
from dfcompile.lowering import Reduction, lower_to_canonical, lower_to_maps
from dfcompile.lowering.operators import Reduce
from dfcompile.testing.expansions import canonical_program
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Node, check_node, lowered, random, scopes
from tests.onnx_text import program_from_text

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@examples(60)
@given(st.sampled_from(REDUCTIONS), shapes, st.booleans(), st.data())
def test_any_axes_of_any_shape(op_type: str, shape: tuple[int, ...], keepdims: bool, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    value = 0.5 + np.abs(random(shape))
    check_node(Node(op_type, [value, np.array(signed)], [1], {"keepdims": int(keepdims)}))


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("axes", [None, []])
def test_without_axes_all_or_none_are_reduced(op_type: str, noop: int, axes: list[int] | None) -> None:
    operands = [0.5 + np.abs(random((2, 3)))] + ([] if axes is None else [np.array(axes, np.int64)])
    check_node(Node(op_type, operands, [1], {"noop_with_empty_axes": noop}))


@pytest.mark.parametrize("op_type", [name for name in REDUCTIONS if "Log" not in name])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_integers_and_double_precision(op_type: str, dtype: str) -> None:
    value = random((3, 4), dtype)
    expected = np.sum(value * value, dtype=dtype) if op_type == "ReduceSumSquare" else None  # the reference widens it
    check_node(Node(op_type, [value], attributes={"keepdims": 0}), expected)


@examples(40)
@given(st.sampled_from(["int32", "int64", "uint32", "uint64"]), st.data())
def test_norm_and_logarithm_of_integers_whose_sum_their_type_does_not_hold(dtype: str, data: st.DataObject) -> None:
    most = int(np.iinfo(dtype).max)
    rows = st.lists(st.integers(most // 2**12, most // 4), min_size=2, max_size=9)
    value = np.array([data.draw(rows)], dtype)
    exact = [int(element) for element in value[0]]
    norm = isqrt(sum(element * element for element in exact))

    found = {op_type: row_reduced(op_type, value) for op_type in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")}

    # As far as double precision tells.
    assert abs(found["ReduceL2"] - norm) <= max(1, norm >> 51)
    assert found["ReduceLogSum"] == int(log(sum(exact)))
    assert abs(found["ReduceLogSumExp"] - max(exact)) <= max(log(9), max(exact) >> 51)


def row_reduced(op_type: str, row: np.ndarray) -> int:
    """Return a reduction of a row."""
    node = Node(op_type, [row, np.array([1])], [1], {"keepdims": 0})
    (found,) = interpret(lowered(node.model()), node.feeds).values()
    return int(found.item())


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_norm_along_no_axis_is_of_no_product_of_integers(dtype: str) -> None:
    value = np.array([65536, 3], dtype)

    check_node(Node("ReduceL2", [value], attributes={"noop_with_empty_axes": 1}), value)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_extrema_of_nothing_but_infinities(op_type: str, value: float) -> None:
    check_node(Node(op_type, [np.full((2, 3), value, np.float32)]))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_extrema_of_truth_values(op_type: str) -> None:
    check_node(Node(op_type, [np.array([[True, False], [True, True], [False, False]]), np.array([1])], [1], opset=20))


def test_log_of_a_sum_of_exponentials_does_not_overflow() -> None:
    check_node(
        Node("ReduceLogSumExp", [np.array([[1000.0, 999.0], [-1000.0, -999.0]], np.float32), np.array([1])], [1])
    )


def test_a_sum_over_the_last_axis_reads_its_operand_as_a_stream() -> None:
    operator = Reduce(Reduction.MAX, axes=(1,), keepdims=False)
    dag = extract(lower_to_maps(canonical_program(operator, [(5, 7)], (5,)), TABLE).sdfg)

    assert dag.nodes_count == 3  # two memories and one downsampler


@pytest.mark.parametrize(("axis", "buffers"), [(1, ["data", "result"]), (0, ["data", "positive", "result"])])
def test_a_reduction_streams_on_both_sides_where_what_it_reduces_is_innermost(axis: int, buffers: list[str]) -> None:
    """Relu, sum, negation: each row is summed as it comes; a column is whole when the last row is there."""
    shape = [6] if axis == 1 else [4]
    program = program_from_text(
        f"g (float[6,4] data) => (float{shape} result) "
        "{ positive = Relu(data)  total = ReduceSum<keepdims = 0>(positive, axis)  result = Neg(total) }",
        axis=np.array([axis]),
    )
    dag = extract(lower_to_maps(lower_to_canonical(program, TABLE), TABLE).sdfg)

    assert [dag.node_name(node) for node in range(dag.nodes_count) if dag.is_buffer[node]] == buffers


def test_axes_named_twice_are_refused() -> None:
    with pytest.raises(UserError, match=r"node 'op': 'x1' \(axes\) is \[0, 0\] against 2 different ones"):
        check_node(Node("ReduceSum", [random((2, 3)), np.array([0, 0])], [1]))


@examples(30)
@given(st.sampled_from(["Softmax", "LogSoftmax", "Hardmax"]), shapes, st.data())
def test_softmax_along_any_axis(op_type: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check_node(Node(op_type, [random(shape)], attributes={"axis": axis}))


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_softmax_of_large_and_of_masked_elements(op_type: str) -> None:
    value = np.array([[1e4, 1e4 - 1, -np.inf], [0, -np.inf, -1e4]], np.float32)
    logarithms = value - np.array([[1e4 + np.log1p(np.exp(-1))], [0]])
    expected = np.exp(logarithms) if op_type == "Softmax" else logarithms
    check_node(Node(op_type, [value]), expected.astype(np.float32))


def test_softmax_before_opset_13_flattens() -> None:
    value = random((2, 3, 4))
    exponentials = np.exp(value)
    expected = exponentials / exponentials.sum(axis=(1, 2), keepdims=True)
    check_node(Node("Softmax", [value], attributes={"axis": 1}, opset=11), expected)


def test_softmax_is_four_tasks_of_which_the_last_two_stream() -> None:
    program = check_node(Node("Softmax", [random((3, 4))]))

    assert scopes(program) == ["op.max", "op.exp", "op.sum", "op.divide"]
    assert extract(program.sdfg).nodes_count > 4


@examples(40)
@given(st.sampled_from(["ArgMax", "ArgMin"]), shapes, st.booleans(), st.booleans(), st.data())
def test_positions_of_extrema(
    op_type: str, shape: tuple[int, ...], keepdims: bool, last: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    value = random(shape, "int32") // 4  # with ties
    check_node(
        Node(op_type, [value], attributes={"axis": axis, "keepdims": int(keepdims), "select_last_index": int(last)})
    )


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_mean_of_large_integers_does_not_overflow(dtype: str) -> None:
    largest = int(np.iinfo(dtype).max)
    x = np.array([[largest, 8, largest]], dtype)
    node = Node("ReduceMean", [x], attributes={"axes": [1], "keepdims": 0}, opset=13)

    found = interpret(lowered(node.model()), {"x0": x})

    assert [value.tolist() for value in found.values()] == [[(2 * largest + 8) // 3]]

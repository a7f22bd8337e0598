"""Every listed reason is seen in onnxruntime itself: were it mended there, the entry would have to go."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.draw import Array
from tests.fuzz.known_differences import known_reason
from tests.fuzz.oracle import Session, load
from tests.onnx_text import model_from_text


def onnxruntime_result(op_type: str, x: Array, name: str = "", values: list[int] | float | str | None = None) -> Array:
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.extend([helper.make_attribute(name, values)] if values else [])
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    return session.run({"x": x}).results["y"]


def test_logarithm_of_an_exponential_is_less_than_the_integer() -> None:
    found = onnxruntime_result("ReduceLogSumExp", np.array([2, 1, 3], np.uint64), "noop_with_empty_axes", 1)

    assert found.tolist() == [1, 1, 3]


def test_mean_of_no_elements_is_zero() -> None:
    assert onnxruntime_result("ReduceMean", np.zeros((0, 1), np.float32)) == 0


@pytest.mark.parametrize(
    ("op_type", "row", "expected"),
    [
        ("ReduceSum", [2**30, 2**30], 2**31 - 1),
        ("ReduceL1", [2**30, -(2**30)], 2**31 - 1),
        ("ReduceL2", [2**31 - 1, 2**31 - 1], 2**31 - 1),
        ("ReduceProd", [2**16, 2**16], 2**31 - 1),
        ("ReduceSumSquare", [2**16, 3], 2**31 - 1),
    ],
)
def test_integers_that_overflow_give_the_largest(op_type: str, row: list[int], expected: int) -> None:
    assert onnxruntime_result(op_type, np.array(row, np.int32)) == expected


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceSum"])
def test_integers_are_reduced_in_double_precision(op_type: str) -> None:
    assert onnxruntime_result(op_type, np.array([2**53 + 1, 0], np.int64)) == 2**53


def test_einsum_of_integers_that_overflow_gives_the_largest() -> None:
    x = np.array([[2**63 - 1, 10]], np.int64)

    assert onnxruntime_result("Einsum", x, "equation", "ab->a") == 2**63 - 1


@pytest.mark.parametrize(("row", "is_known"), [([2**53, 2], True), ([2**52, -(2**52)], False)])
def test_only_a_sum_of_an_einsum_that_overflows_is_excused(row: list[int], *, is_known: bool) -> None:
    graph = helper.make_graph([helper.make_node("Einsum", ["x"], ["y"], equation="ab->a")], "one", [], [])
    results = {"y": np.array([0], np.int64)}, {"y": np.array([1], np.int64)}

    assert bool(known_reason(helper.make_model(graph), {"x": np.array([row], np.int64)}, *results)) == is_known


def test_mean_of_integers_is_of_a_sum_in_double_precision() -> None:
    assert onnxruntime_result("ReduceMean", np.array([2**60 + 1, 4], np.int64)) == 2**59


def test_exponentials_of_integers_without_a_sign_overflow() -> None:
    assert onnxruntime_result("ReduceLogSumExp", np.array([800, 3], np.uint32)) == 0


@pytest.mark.parametrize(
    ("op_type", "row", "is_known"),
    [
        ("ReduceSum", [2**30, 2**30], True),
        ("ReduceSum", [2**30, 2**30 - 1], False),
        ("ReduceSumSquare", [2**16, 3], True),
        ("ReduceSumSquare", [2**15, 3], False),
        ("ReduceL2", [2**16, 3], False),  # whose sum of squares is no result
        ("ReduceMean", [2**31 - 1, 2**31 - 1], False),
        ("ReduceLogSum", [2**31 - 1, 2**31 - 1], False),
    ],
)
def test_only_a_result_that_overflows_is_excused(op_type: str, row: list[int], *, is_known: bool) -> None:
    x = np.array(row, np.int32)
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "one", [], [])
    results = {"y": np.array([0], np.int32)}, {"y": np.array([1], np.int32)}

    assert bool(known_reason(helper.make_model(graph), {"x": x}, *results)) == is_known


def test_row_with_something_undefined_is_not_undefined_in_double_precision() -> None:
    found = onnxruntime_result("LogSoftmax", np.array([[1, np.nan, 2]], np.float64))

    assert np.isfinite(found[0, [0, 2]]).all()


@pytest.mark.parametrize("element", [np.inf, np.nan])
def test_element_that_is_not_finite_spoils_the_channels_behind_it(element: float) -> None:
    found = onnxruntime_result("LRN", np.array([[[[element]], [[1]], [[1]]]], np.float32), "size", 1)

    assert np.isnan(found[0, 1:]).all()


def test_row_that_is_masked_as_a_whole_is_undefined_in_double_precision() -> None:
    one, shape = np.ones((1, 1, 1, 2)), (1, 1, 1, 2)
    node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name in "qkv"]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, (1, 1)))
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", TensorProto.DOUBLE, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)

    found = session.run({"q": one, "k": one, "v": one, "mask": np.array([[False]])}).results["y"]

    assert np.isnan(found).all()


def test_infinity_counts_more_than_what_is_undefined() -> None:
    row = np.array([1, np.inf, np.nan], np.float32)

    assert onnxruntime_result("ReduceLogSumExp", row).tolist() == [np.inf]


def test_masked_scores_count_beside_a_negative_infinity() -> None:
    shape, keys = (1, 1, 1, 1), (1, 1, 2, 1)
    node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])
    inputs = [helper.make_tensor_value_info("q", TensorProto.FLOAT, shape)]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, keys) for name in "kv"]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, (1, 2)))
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    data = {
        "q": np.ones(shape, np.float32),
        "k": np.array([1, -np.inf], np.float32).reshape(keys),
        "v": np.array([5, 7], np.float32).reshape(keys),
        "mask": np.array([[False, True]]),
    }

    assert session.run(data).results["y"].tolist() == [[[[5.0]]]]  # of the key that may not be looked at


def test_extremum_depends_on_the_place_of_what_is_undefined() -> None:
    first, second = np.array([[np.nan, 1]], np.float32), np.array([[2, np.nan]], np.float32)

    assert np.isnan(onnxruntime_result("ReduceMax", first))
    assert onnxruntime_result("ReduceMax", second) == 2


@pytest.mark.parametrize("node", ["ScatterND", "ScatterElements"])
@pytest.mark.parametrize("reduction", ["min", "max"])
@pytest.mark.parametrize(
    ("row", "is_number"), [([np.nan, 2, 2], True), ([1, np.nan, 2], True), ([1, 2, np.nan], False)]
)
def test_update_depends_on_the_place_of_what_is_undefined(
    node: str, reduction: str, row: list[float], *, is_number: bool
) -> None:
    shape = "2,1" if node == "ScatterND" else "2"
    model = model_from_text(
        f"g (float[1] x, float[2] u) => (float[1] y) <int64[{shape}] i = {{0, 0}}>"
        f' {{ y = {node}<reduction="{reduction}">(x, i, u) }}'
    )
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    operands: dict[str, Array] = {"x": np.array(row[:1], np.float32), "u": np.array(row[1:], np.float32)}
    expected = session.run(operands).results
    assert expected["y"].tolist() == [2] if is_number else np.isnan(expected["y"]).all()

    operands["i"] = np.zeros(2, np.int64)
    if is_number:
        assert known_reason(model, operands, {"y": np.array([np.nan], np.float32)}, expected)
        assert not known_reason(model, operands, {"y": np.array([1], np.float32)}, expected)


def test_determinant_with_an_infinite_element() -> None:
    matrix = np.array([[1, 2, 3], [4, 5, 6], [7, 8, np.inf]], np.float32)

    assert np.isnan(onnxruntime_result("Det", matrix))  # - inf by its cofactor, which is -3


def test_sign_of_what_is_undefined_in_half_precision() -> None:
    assert onnxruntime_result("Sign", np.array([np.nan], np.float16)) == 0
    assert np.isnan(onnxruntime_result("Sign", np.array([np.nan], np.float32)))


def test_integer_that_single_precision_does_not_hold() -> None:
    found = onnxruntime_result("Shrink", np.array([2**24 + 1], np.int32), "bias", 1.0)

    assert found.tolist() == [2**24 - 1]


def test_place_of_what_is_undefined_counts_in_a_single_row() -> None:
    row = np.array([1, np.nan, 2], np.float32)

    assert onnxruntime_result("ArgMax", row).tolist() == [1]
    assert onnxruntime_result("ArgMax", row[:, None]).tolist() == [[2]]


def test_largest_number_is_not_found_behind_what_is_undefined() -> None:
    """The same numbers in another order: 2 is the largest one, or is not."""
    places = ([1.0, np.nan, 2.0, 0.0], [2.0, 1.0, np.nan, 0.0], [np.nan, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, np.nan])
    found = {float(onnxruntime_result("Hardmax", np.array([row], np.float32))[0, row.index(2.0)]) for row in places}

    assert found == {0.0, 1.0}


def test_loss_of_a_row_with_an_infinite_element_in_double_precision() -> None:
    graph = helper.make_graph(
        [helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"], reduction="none")],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1, 3]),
         helper.make_tensor_value_info("t", TensorProto.INT64, [1])],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    found = session.run({"x": np.array([[np.inf, 1.0, 2.0]]), "t": np.array([1])}).results["y"]

    assert found.tolist() == [np.inf]  # by its definition the row's sum has exp(inf - inf), which is NaN


def test_beta_of_a_product_of_no_elements_is_left_out() -> None:
    model = model_from_text(
        "g (float[1,0] a, float[0,2] b, float[1,1] c) => (float[1,2] y) { y = Gemm<beta = -2.0>(a, b, c) }"
    )
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    empty = {"a": np.zeros((1, 0), np.float32), "b": np.zeros((0, 2), np.float32)}
    found = session.run({**empty, "c": np.array([[3]], np.float32)}).results["y"]

    assert found.tolist() == [[3.0, 3.0]]  # by its definition -6


def test_maximum_of_a_window_depends_on_the_place_of_what_is_undefined() -> None:
    first = np.array([[[[np.nan, 4], [3, 2]]]], np.float32)
    last = np.array([[[[5, 4], [3, np.nan]]]], np.float32)

    assert onnxruntime_result("MaxPool", first, "kernel_shape", [2, 2]) == 4
    assert np.isnan(onnxruntime_result("MaxPool", last, "kernel_shape", [2, 2]))


def test_window_of_negative_infinities() -> None:
    x = np.full((1, 1, 2), -np.inf, np.float32)

    assert onnxruntime_result("GlobalMaxPool", x).item() == np.finfo(np.float32).min


def test_infinite_scale() -> None:
    x = np.array([[[1, 2, 3, 6]]], np.float32)
    one = [numpy_helper.from_array(np.array([value], np.float32), name) for name, value in (("s", -np.inf), ("b", 0))]
    graph = helper.make_graph(
        [helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [onnx.ValueInfoProto(name="y")],
        one,
    )
    session = load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    )
    assert isinstance(session, Session)

    # By definition [inf, inf, -inf * 0, -inf].
    assert np.isnan(session.run({"x": x}).results["y"]).sum() > 1


def test_division_by_a_deviation_of_zero() -> None:
    graph = (
        "g (float[1,1,2] x) => (float[1,1,2] y) { s = Constant<value = float[1] {1.0}>() "
        "b = Constant<value = float[1] {0.0}>() v = Constant<value = float[1] {0.25}>() "
        "y = BatchNormalization<epsilon = -0.25>(x, s, b, s, v) }"
    )
    session = load(model_from_text(graph).SerializeToString())
    assert isinstance(session, Session)

    # By definition (x - 1) / 0, of 2 and 3 infinite.
    assert np.isnan(session.run({"x": np.array([[[2, 3]]], np.float32)}).results["y"]).all()


def test_variance_of_zero() -> None:
    x = np.full((2, 1), 1.125, np.float32)

    assert np.isnan(onnxruntime_result("MeanVarianceNormalization", x, "axes", [1])).all()


def test_neighbour_without_weight_is_not_read_at_a_border() -> None:
    types = "(float[1,1,1,2] x, float[1,1,1,2] p) => (float[1,1,1,1] y)"
    model = model_from_text(f'g {types} {{ y = GridSample<padding_mode="border">(x, p) }}')
    model.ir_version = 8
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    x, place = np.array([[[[3, np.nan]]]], np.float32), np.full((1, 1, 1, 2), -9, np.float32)

    assert session.run({"x": x, "p": place}).results["y"].item() == 3


def test_neighbour_without_weight_is_multiplied_by_cubic_resizing() -> None:
    graph = """g (float[1,1,1,2] x) => (float[1,1,2,2] y) <int64[4] s = {1, 1, 2, 2}>
        { y = Resize<mode="cubic">(x, , , s) }"""
    session = load(model_from_text(graph).SerializeToString())
    assert isinstance(session, Session)

    assert np.isnan(session.run({"x": np.array([[[[3, np.nan]]]], np.float32)}).results["y"]).all()


def test_one_causal_query_attends_to_all_new_keys_behind_a_cache() -> None:
    graph = """g (float[1,1,1,2] q, float[1,1,2,2] k, float[1,1,2,2] v, float[1,1,1,2] pk, float[1,1,1,2] pv)
        => (float[1,1,1,2] y, float[1,1,3,2] a, float[1,1,3,2] b)
        { y, a, b = Attention<is_causal=1>(q, k, v, , pk, pv) }"""
    model = model_from_text(graph)
    model.opset_import[0].version = 23
    model.ir_version = 10
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    one, two = np.zeros((1, 1, 1, 2), np.float32), np.zeros((1, 1, 2, 2), np.float32)
    values = np.array([[[[3, 3], [6, 6]]]], np.float32)

    found = session.run({"q": one, "k": two, "v": values, "pk": one, "pv": one}).results["y"]

    assert found.reshape(-1).tolist() == [3, 3]  # the mean of 0, 3 and 6; of the first two it were 1.5


def test_steps_of_what_is_not_finite_are_the_largest_below_a_zero_point() -> None:
    graph = (
        "g (float[2,5,4] x, float[2,3,4] s) => (int8[2,5,4] y) <int8[2,3,4] z = {"
        + ", ".join("7, -7" for _ in range(12))
        + "}> { y = QuantizeLinear<axis=1, block_size=2>(x, s, z) }"
    )
    model = model_from_text(graph)
    model.opset_import[0].version = 21
    model.ir_version = 10
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    scales = np.ones((2, 3, 4), np.float32)

    for element in (np.nan, -np.inf):
        x = np.full((2, 5, 4), element, np.float32)
        assert {*session.run({"x": x, "s": scales}).results["y"].reshape(-1).tolist()} == {-128, 127}


def test_rank_of_what_is_undefined_is_none() -> None:
    graph = "g (float[3] x) => (float[1] y, int64[1] i) <int64[1] k = {1}> { y, i = TopK(x, k) }"
    session = load(model_from_text(graph).SerializeToString())
    assert isinstance(session, Session)

    def first(*x: float) -> int:
        return int(session.run({"x": np.array(x, np.float32)}).results["i"][0])

    assert (first(np.nan, 1, 2), first(1, np.nan, 2), first(1, 2, np.nan)) not in {(0, 1, 2), (2, 2, 1)}


def test_deviation_of_which_the_square_is_zero() -> None:
    x = np.array([[1e-40, 0.0]], np.float32)  # the variance underflows, not so the distance from the mean

    assert onnxruntime_result("MeanVarianceNormalization", x, "axes", [1]).tolist() == [[np.inf, -np.inf]]


def test_remainder_of_an_integer_that_double_precision_does_not_hold() -> None:
    node = helper.make_node("Mod", ["x", "x2"], ["y"], fmod=1)
    x, x2 = np.array([2**63 - 1], np.int64), np.array([-6], np.int64)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("x", "x2")]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)

    assert session.run({"x": x, "x2": x2}).results["y"].tolist() == [2]
    assert (2**63 - 1) % 6 == 1


def test_mean_of_a_row_with_an_infinite_element() -> None:
    x, scale = np.array([[-np.inf, 1.5]], np.float32), np.ones(2, np.float32)
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["x", "s"], ["y", "m"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [onnx.ValueInfoProto(name="m")],
        [numpy_helper.from_array(scale, "s")],
    )
    session = load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    )
    assert isinstance(session, Session)

    assert np.isnan(session.run({"x": x}).results["m"]).all()


def test_shrink_of_double_precision_is_rounded_to_single() -> None:
    found = onnxruntime_result("Shrink", np.array([np.sqrt(2.125)]), "bias", 1.25)

    assert 1e-9 < abs(found[0] - (np.sqrt(2.125) - 1.25)) < 1e-6


def test_celu_of_what_is_small_beside_alpha_is_zero() -> None:
    found = onnxruntime_result("Celu", np.array([-0.125], np.float32), "alpha", -1e30)

    assert found.tolist() == [0]


def test_clip_without_bounds_is_finite() -> None:
    found = onnxruntime_result("Clip", np.array([np.inf, -np.inf], np.float32))

    assert np.abs(found).tolist() == [np.finfo(np.float32).max] * 2


def test_data_without_a_range_have_no_steps() -> None:
    """Scale and zero point of infinite data: inf, and 0 - -inf / inf."""
    graph = helper.make_graph(
        [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [onnx.ValueInfoProto(name=name) for name in "ysz"],
    )
    session = load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8).SerializeToString()
    )
    assert isinstance(session, Session)

    scales = [
        float(session.run({"x": np.array([1, 2, value], np.float32)}).results["s"]) for value in (np.inf, -np.inf)
    ]
    assert scales == [np.inf, np.inf]


def test_an_infinite_half_becomes_the_least_step() -> None:
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [3])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(1, np.float16), "s"), numpy_helper.from_array(np.array(0, np.int8), "z")],
    )
    session = load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    )
    assert isinstance(session, Session)

    found = session.run({"x": np.array([np.inf, -np.inf, 300], np.float16)}).results["y"]
    assert found.tolist() == [-128, -128, 127]


def test_no_elements_along_an_axis_from_the_end() -> None:
    x = np.zeros((0, 2), np.float32)
    node = helper.make_node("ReduceMax", ["x"], ["y"], axes=[0, -1])
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)

    assert session.run({"x": x}).results["y"].shape == (1, 2)


@pytest.mark.parametrize(("exponent", "is_known"), [(19, False), (20, True)])
def test_power_beyond_its_type_is_made_of_double_precision(exponent: int, *, is_known: bool) -> None:
    graph = helper.make_graph(
        [helper.make_node("Pow", ["x", "e"], ["y"])],
        "one",
        [helper.make_tensor_value_info(name, TensorProto.INT32, [2]) for name in "xe"],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    operands = {"x": np.array([3, 3], np.int32), "e": np.array([exponent, 2], np.int32)}

    expected = session.run(operands).results

    modular = (3**exponent + 2**31) % 2**32 - 2**31
    assert (expected["y"].tolist() == [modular, 9]) is not is_known
    assert bool(known_reason(model, operands, {"y": np.array([modular - 1, 9], np.int32)}, expected)) is is_known
    assert not known_reason(model, operands, {"y": np.array([modular, 8], np.int32)}, expected)


@pytest.mark.parametrize(("coefficient", "is_known"), [(-1e30, True), (-0.75, False)])
def test_weights_of_a_large_coefficient_do_not_sum_to_one(coefficient: float, *, is_known: bool) -> None:
    graph = """g (float[1,1,4,4] x) => (float[1,1,3,3] y) <float[4] s = {1, 1, 0.8, 0.8}>
        { y = Resize<mode="cubic">(x, , s) }"""
    model = model_from_text(graph)
    model.graph.node[0].attribute.append(helper.make_attribute("cubic_coeff_a", coefficient))
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    x = np.ones((1, 1, 4, 4), np.float32)

    expected = session.run({"x": x}).results

    assert np.allclose(expected["y"], 1) is not is_known
    assert bool(known_reason(model, {"x": x}, {"y": x[..., :3, :3]}, {"y": x[..., :3, :3] + 1})) is is_known


@pytest.mark.parametrize(("axes", "is_known"), [("2, -1", True), ("2, 3", False)])
def test_axis_from_the_end_stays_where_sizes_keep_a_ratio(axes: str, *, is_known: bool) -> None:
    model = model_from_text(
        f"""g (float[1,1,2,2] x) => (float[1,1,H,W] y) <int64[2] s = {{7, 8}}>
        {{ y = Resize<axes=[{axes}], keep_aspect_ratio_policy="not_larger", mode="nearest">(x, , , s) }}"""
    )
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    x = np.ones((1, 1, 2, 2), np.float32)

    expected = session.run({"x": x}).results

    assert (expected["y"].shape != (1, 1, 7, 7)) is is_known
    assert bool(known_reason(model, {"x": x}, {"y": np.ones((1, 1, 7, 7), np.float32)}, {"y": x})) is is_known


@pytest.mark.parametrize(("scale", "is_known"), [(0, True), (1, False)])
def test_a_half_over_a_scale_of_zero_is_infinite(scale: int, *, is_known: bool) -> None:
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=0)],
        "one",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2]),
            helper.make_tensor_value_info("s", TensorProto.FLOAT16, [2]),
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array([7, 7], np.uint8), "z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    operands = {"x": np.array([2, 3], np.float16), "s": np.array([scale, 1], np.float16)}

    expected = session.run(operands).results

    assert expected["y"].tolist() == [0 if is_known else 9, 10]
    operands |= {"z": np.array([7, 7], np.uint8)}
    assert bool(known_reason(model, operands, {"y": np.array([255, 10], np.uint8)}, expected)) is is_known
    assert not known_reason(model, operands, {"y": np.array([255, 11], np.uint8)}, expected)


@pytest.mark.parametrize(("zero", "theirs"), [(7, -128), (-90, 127)])
def test_an_infinite_half_passes_the_least_step_beside_a_negative_zero_point(zero: int, theirs: int) -> None:
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(1, np.float16), "s"), numpy_helper.from_array(np.array(zero, np.int8), "z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    x = np.array([np.inf, 3], np.float16)
    operands: dict[str, Array] = {"x": x, "s": np.array(1, np.float16), "z": np.array(zero, np.int8)}

    expected = session.run({"x": x}).results

    assert expected["y"].tolist() == [theirs, zero + 3]
    for ours, is_known in (([5, zero + 3], True), ([theirs, zero + 4], False)):
        assert bool(known_reason(model, operands, {"y": np.array(ours, np.int8)}, expected)) is is_known

"""What files may hold beside nodes and dense tensors: sparse ones, texts that nobody reads, the first form of files."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.opset import at_common_opset
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from dfcompile.frontend.onnx.reference_evaluation import evaluate
from tests.examples import examples
from tests.interpreter import Array, interpret
from tests.onnx_nodes import assert_same, lowered, random
from tests.onnx_text import model_from_text, program_from_model


def _sparse(dense: Array, *, is_flat: bool, name: str = "w") -> onnx.SparseTensorProto:
    places = np.argwhere(dense)
    values = numpy_helper.from_array(dense[tuple(places.T)], name)
    indices: Array = np.asarray(np.ravel_multi_index(tuple(places.T), dense.shape)) if is_flat else places
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices.astype(np.int64), "places"), dense.shape)


@examples(20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans(), st.integers(0, 2), st.booleans())
def test_sparse_initializers_and_constants(shape: list[int], is_flat: bool, seed: int, is_constant: bool) -> None:
    dense = random(shape, seed=seed) * (random(shape, seed=seed + 9) > 0)
    text = f"g (float[{','.join(map(str, shape))}] x) => (y) {{ y = Add(x, w) }}"
    model, x = model_from_text(text), random(shape, seed=5)
    sparse = _sparse(dense, is_flat=is_flat)
    if is_constant:
        model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    else:
        model.graph.sparse_initializer.append(sparse)

    assert_same(interpret(lowered(model), {"x": x}), {"y": x + dense}, 1e-6, 1e-6)


def test_sparse_constant_within_a_branch() -> None:
    text = """g (float[3] x) => (y) <bool c = {1}> {
        y = If(c) <then_branch = t () => (a) {a = Add(x, w)}, else_branch = e () => (b) {b = Neg(x)}>
    }"""
    model = model_from_text(text)
    branch = next(entry.g for entry in model.graph.node[0].attribute if entry.name == "then_branch")
    branch.sparse_initializer.append(_sparse(np.array([0, 2, 0], np.float32), is_flat=True))

    assert interpret(lowered(model), {"x": np.ones(3, np.float32)})["y"].tolist() == [1, 3, 1]


@pytest.mark.parametrize(
    ("places", "dims", "message"),
    [
        ([0, 3], [3], "a place outside of [3]"),
        ([1, 0], [3], "places against ascending ones, each once"),
        ([1, 1], [3], "places against ascending ones, each once"),
        ([0], [3], "places int64 [1] against int64 [2] or [2, 1]"),
        ([0, 1], [2**40], f"dimensions [{2**40}] against at most {2**28} elements in at least one dimension"),
        ([0, 1], [-3], f"dimensions [-3] against at most {2**28} elements in at least one dimension"),
    ],
)
def test_sparse_constant_that_contradicts_itself(places: list[int], dims: list[int], message: str) -> None:
    model = model_from_text("g (float[3] x) => (y) { y = Add(x, w) }")
    values = numpy_helper.from_array(np.ones(2, np.float32), "w")
    indices = numpy_helper.from_array(np.array(places, np.int64), "places")
    model.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=dims))

    with pytest.raises(UserError) as caught:
        program_from_model(model)

    assert str(caught.value) == f"sparse constant 'w': {message}"


@pytest.mark.parametrize(
    "nodes",
    [
        's = Constant<value_string = "ab">()',
        's = Constant<value_strings = ["a", "b"]>() t = Identity(s)',
    ],
)
def test_texts_that_no_output_depends_on(nodes: str) -> None:
    model = model_from_text(f"g (float[3] x) => (y) {{ y = Relu(x) {nodes} }}")
    unread = onnx.TensorProto(name="unread", data_type=onnx.TensorProto.STRING, dims=[1], string_data=[b"ab"])
    model.graph.initializer.append(unread)

    assert [port.name for port in program_from_model(model).inputs] == ["x"]


def test_texts_that_an_output_depends_on_are_refused() -> None:
    model = model_from_text('g (float[3] x) => (y, s) { y = Relu(x) s = Constant<value_string = "ab">() }')

    with pytest.raises(UserError, match="element type 'string' against"):
        program_from_model(model)


@pytest.mark.parametrize("form", [1, 2])
def test_first_forms_of_files_mean_the_first_operator_set(form: int) -> None:
    model = model_from_text("g (float[3] x) => (y) { y = Relu(x) }")
    model.ir_version = form
    del model.opset_import[:]

    with pytest.raises(UserError, match="operator set 1 against 7 to"):
        program_from_model(model)


def test_later_forms_have_to_say_their_operator_set() -> None:
    model = model_from_text("g (float[3] x) => (y) { y = Relu(x) }")
    del model.opset_import[:]

    with pytest.raises(UserError, match="no operator set of ONNX is imported"):
        program_from_model(model)


@examples(12)
@given(st.integers(7, 8), st.integers(0, 1), st.lists(st.integers(1, 3), max_size=2))
def test_normalisation_with_statistics_of_every_element(opset: int, spatial: int, rest: list[int]) -> None:
    own = [2] if spatial else [2, *rest]
    statistics = [random(own, seed=seed) for seed in range(3)] + [np.abs(random(own, seed=3)) + 0.5]
    names = ["scale", "bias", "mean", "variance"]
    node = helper.make_node("BatchNormalization", ["x", *names], ["y"], spatial=spatial, epsilon=1e-3)
    shape = [3, 2, *rest]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, shape)],
        [numpy_helper.from_array(value, name) for name, value in zip(names, statistics, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    x = random(shape, seed=7)
    answer = evaluated(model, {"x": x})
    assert answer is not None

    assert_same(interpret(lowered(model), {"x": x}), {"y": answer[1][0]}, 1e-4, 1e-4)
    assert_same({"y": evaluate(at_common_opset(model), {"x": x}, "g")[0]}, {"y": answer[1][0]}, 1e-4, 1e-4)

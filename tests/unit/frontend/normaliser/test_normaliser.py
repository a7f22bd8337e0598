"""The normaliser: what it removes, and that it changes no result."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

from dfcompile.frontend import read_model
from dfcompile.frontend.normaliser import normalise
from dfcompile.frontend.onnx.draft_reading import read_draft
from dfcompile.frontend.onnx.origins import name_nodes
from dfcompile.frontend.onnx.shapes import checkable
from tests.examples import examples

ModelWriter = Callable[[str], Path]


def normalised_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model after all passes, as ONNX."""
    return checkable(normalise(name_nodes(read_draft(model))).draft)


def outputs(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(ReferenceEvaluator(model).run(None, values))


def coverage_of(path: Path) -> dict[str, str]:
    return {node.name: node.coverage.name for node in read_model(path).program.nodes}


def test_identity_and_dropout_are_views(write_model: ModelWriter) -> None:
    path = write_model(
        """g (float[2] x) => (float[2] y, float[2] z) <float ratio = {0.5}, bool off = {0}> {
          [i] a = Identity(x)
          [e] b = Exp(a)
          [d] c, mask = Dropout(b, ratio, off)
          [j] y = Identity(c)
          [r] z = Relu(c)
        }"""
    )

    program = read_model(path).program

    assert coverage_of(path) == {"i": "VIEW", "e": "COSTED", "d": "VIEW", "j": "VIEW", "r": "COSTED"}
    assert [port.array for port in program.outputs] == ["y", "z"]
    assert sorted(program.sdfg.arrays) == ["x", "y", "z"]


def test_dropout_in_training_stays(write_model: ModelWriter) -> None:
    path = write_model(
        "g (float[2] x) => (float[2] y) <float ratio = {0.5}, bool on = {1}> { [d] y = Dropout(x, ratio, on) }"
    )

    assert coverage_of(path) == {"d": "COSTED"}


def test_dropout_whose_mask_is_read_stays(write_model: ModelWriter) -> None:
    path = write_model("g (float[2] x) => (float[2] y, bool[2] n) { [d] y, mask = Dropout(x) [n] n = Not(mask) }")

    assert coverage_of(path) == {"d": "COSTED", "n": "COSTED"}


def test_dead_nodes_and_unused_weights_are_dropped(write_model: ModelWriter) -> None:
    path = write_model(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [dead] z = Add(x, w) [live] y = Relu(x) }"
    )

    assert coverage_of(path) == {"dead": "FOLDED", "live": "COSTED"}
    assert not read_model(path).program.parameters


def test_constant_output_is_computed_by_a_node(write_model: ModelWriter) -> None:
    path = write_model("g (float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { [a] y = Add(w, w) }")

    assert coverage_of(path) == {"a": "COSTED", "w.copy": "COSTED"}


def test_constant_node_may_be_an_output(write_model: ModelWriter) -> None:
    path = write_model(
        "g (float[2] x) => (float[2] y, float[1] c) { [r] y = Relu(x) [k] c = Constant<value = float[1] {7}>() }"
    )

    program = read_model(path).program

    assert coverage_of(path) == {"r": "COSTED", "k": "FOLDED", "c.copy": "COSTED"}
    assert [(port.array, port.shape) for port in program.outputs] == [("y", (2,)), ("c", (1,))]
    assert {name: value.tolist() for name, value in program.parameters.items()} == {"c_value": [7.0]}


def test_input_may_be_an_output(write_model: ModelWriter) -> None:
    path = write_model("g (float[2] x) => (float[2] x, float[2] y) { [r] y = Relu(x) }")

    program = read_model(path).program

    assert coverage_of(path) == {"r": "COSTED", "x.copy": "COSTED"}
    assert [port.array for port in program.outputs] == ["x_copy", "y"]


def test_random_nodes_are_no_constants(write_model: ModelWriter) -> None:
    path = write_model("g (float[2] x) => (float[2] y) { [r] n = RandomNormal<shape=[2]>() [a] y = Add(x, n) }")

    assert coverage_of(path) == {"r": "COSTED", "a": "COSTED"}


def test_huge_constants_are_not_made(write_model: ModelWriter) -> None:
    path = write_model(
        """g (float[2] x) => (float[2] y) <int64[2] big = {1000000, 1000000}, int64[1] two = {2}> {
          [fill] z = ConstantOfShape(big)
          [sum] s = ReduceSum<keepdims=0>(z)
          [add] y = Add(x, s)
        }"""
    )

    assert coverage_of(path) == {"fill": "COSTED", "sum": "COSTED", "add": "COSTED"}


def test_outer_product_of_constants_stays_a_node(write_model: ModelWriter) -> None:
    path = write_model("""g (float[1] x) => (y) <int64[2] column = {16384, 1}, int64[2] row = {1, 16384}> {
      [a] c = ConstantOfShape(column) [b] r = ConstantOfShape(row) [outer] p = Mul(c, r) [add] y = Add(x, p)
    }""")

    assert coverage_of(path) == {"a": "FOLDED", "b": "FOLDED", "outer": "COSTED", "add": "COSTED"}


def test_old_softmax_keeps_its_meaning(write_model: ModelWriter) -> None:
    text = """<ir_version: 7, opset_import: ["": 11]>
    g (float[2,3,4] x) => (float[2,3,4] y) {
      [sm] t = Softmax<axis=1>(x)
      [drop] u = Dropout<ratio=0.5>(t)
      [un] v = Unsqueeze<axes=[0]>(u)
      [sq] y = Squeeze<axes=[0]>(v)
    }"""
    values = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
    model = parser.parse_model(text)
    flat = np.exp(values["x"].reshape(2, 12))

    coverage = coverage_of(write_model(text))

    assert {name: coverage[name] for name in ("sm", "drop", "un", "sq")} == {
        "sm": "COSTED",
        "drop": "VIEW",
        "un": "VIEW",
        "sq": "VIEW",
    }
    np.testing.assert_allclose(
        outputs(normalised_model(model), values)[0],
        (flat / flat.sum(axis=1, keepdims=True)).reshape(2, 3, 4),
        rtol=1e-5,
    )


def test_functions_of_onnx_become_named_parts(write_model: ModelWriter) -> None:
    text = """g (float[2,3] x, int64[2] t) => (float y) { [loss] y = SoftmaxCrossEntropyLoss(x, t) }"""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 23]> {text}')
    values = {"x": np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32), "t": np.array([0, 2])}

    coverage = coverage_of(write_model(text))
    assert coverage["loss"] == "COSTED"
    assert any(name.startswith("loss.") for name in coverage)
    np.testing.assert_allclose(outputs(normalised_model(model), values)[0], outputs(model, values)[0], rtol=1e-5)


def test_two_functions_do_not_share_values(write_model: ModelWriter) -> None:
    text = """g (float[2,3] x, int64[2] t) => (float y) {
      a = SoftmaxCrossEntropyLoss(x, t)
      b = SoftmaxCrossEntropyLoss<reduction="sum">(x, t)
      y = Sub(a, b)
    }"""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 23]> {text}')
    values = {"x": np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32), "t": np.array([0, 2])}

    coverage_of(write_model(text))
    np.testing.assert_allclose(outputs(normalised_model(model), values)[0], outputs(model, values)[0], rtol=1e-5)


def test_empty_parts_vanish(write_model: ModelWriter) -> None:
    path = write_model("""g (float[2,4] x) => (float[2,4] y) <int64[2] sizes = {4, 0}> {
      [cut] a, b = Split<axis=1>(x, sizes)
      [negate] c = Neg(a)
      [join] y = Concat<axis=1>(c, b)
    }""")

    assert coverage_of(path) == {"cut": "COSTED", "negate": "COSTED", "join": "VIEW"}


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """Graphs over float[2,3] values: an input, a constant, unary, binary, pass-through and shape nodes."""
    values = ["x", "w"]
    nodes = []
    for at in range(draw(st.integers(1, 10))):
        op_type = draw(st.sampled_from(["Tanh", "Neg", "Add", "Mul", "Identity", "Dropout", "Reshape"]))
        operands = [draw(st.sampled_from(values))]
        if op_type in {"Add", "Mul"}:
            operands.append(draw(st.sampled_from(values)))
        if op_type == "Reshape":
            nodes.append(helper.make_node("Shape", [draw(st.sampled_from(values))], [f"s{at}"]))
            operands.append(f"s{at}")
        nodes.append(helper.make_node(op_type, operands, [f"v{at}"]))
        values.append(f"v{at}")
    # The outputs may well be the input, the constant, or a node that is passed through.
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
    weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 3], [0.5, -1, 2, 3, -0.25, 1])
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in chosen],
            [weights],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )


@given(graphs())
@examples(60)
def test_passes_change_no_result(model: onnx.ModelProto) -> None:
    values = {"x": np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)}

    after = normalised_model(model)

    for expected, found in zip(outputs(model, values), outputs(after, values), strict=True):
        np.testing.assert_array_equal(found, expected)


@given(graphs())
@examples(40)
def test_passes_are_idempotent_and_account_for_every_node(model: onnx.ModelProto) -> None:
    named = name_nodes(read_draft(model))

    once = normalise(named)
    twice = normalise(once.draft)

    assert twice.draft.proto.SerializeToString() == once.draft.proto.SerializeToString()
    assert [node.name for node in once.nodes[: len(model.graph.node)]] == [node.name for node in named.proto.graph.node]
    assert len({node.name for node in once.nodes}) == len(once.nodes)
    assert {node.name for node in once.draft.proto.graph.node} <= {node.name for node in once.nodes}


def test_passes_do_not_change_their_argument(write_model: ModelWriter) -> None:
    model = onnx.load(str(write_model("g (float[2] x) => (float[2] y) { a = Identity(x) b = Exp(a) y = Identity(b) }")))
    named = name_nodes(read_draft(model))
    before = named.proto.SerializeToString()

    normalise(named)

    assert named.proto.SerializeToString() == before


@pytest.mark.parametrize("op_type", ["Reshape", "Flatten", "Squeeze", "Unsqueeze"])
def test_views_are_covered_as_views(op_type: str, write_model: ModelWriter) -> None:
    operands = {"Reshape": "x, s", "Flatten": "x", "Squeeze": "x, a", "Unsqueeze": "x, a"}[op_type]
    path = write_model(
        f"g (float[1,6] x) => (y) <int64[2] s = {{2, 3}}, int64[1] a = {{0}}> {{ [v] y = {op_type}({operands}) }}"
    )

    assert coverage_of(path) == {"v": "VIEW"}

"""Verification: what is tolerated, and how a disagreement is told."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dfcompile.cli.main import main
from dfcompile.errors import DisagreementError, UnsupportedOpError, UserError
from dfcompile.frontend import Answer, Coverage, Model, Program, read_model
from dfcompile.host.stages import Watch, Work, watched_by
from dfcompile.lowering.execution.compiled_run import COMPILING_PARTS, RUNNING_PARTS, Values
from dfcompile.lowering.execution.verification import (
    coarsest_dtype,
    effect_of_inputs,
    is_quantised,
    longest_sum,
    tolerance,
    verified_deviation,
)
from dfcompile.records import replace
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Node, lowered, random


def _model(tmp_path: Path, node: Node) -> Model:
    onnx.save(node.model(), tmp_path / "model.onnx")
    return read_model(tmp_path / "model.onnx")


def _answering(model: Model, *outputs: Array) -> Model:
    def answer(inputs: object) -> Answer:
        del inputs
        return Answer(outputs, "an oracle", "ask it again")

    return Model(model.program, answer, model.examples)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run without a compiler: what is told does not depend on it."""

    def run(program: Program, inputs: Values, *, work: Work) -> Values:
        with work.part(COMPILING_PARTS + RUNNING_PARTS):
            return interpret(program, inputs)

    monkeypatch.setattr("dfcompile.lowering.execution.verification.run_program", run)


def test_all_of_a_comparison_is_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node("Relu", [random((3,))])
    model, maps = _model(tmp_path, node), lowered(node.model())
    shares: list[float | None] = []
    watch = Watch(lambda _: None)
    add = Work.add

    def noted(work: Work, parts: float = 1.0) -> None:
        add(work, parts)
        shares.append(watch.share())

    monkeypatch.setattr(Work, "add", noted)
    with watched_by(watch):
        verified_deviation(model, maps, 0)

    assert shares == [pytest.approx(1 / 28), 1.0]


def test_tolerance_grows_with_the_type_and_the_square_root_of_the_terms() -> None:
    eps = float(np.finfo(np.float32).eps)

    assert tolerance("float32", 100) == pytest.approx(5e-5 + 20 * eps)
    assert tolerance("float32", 10_000) - tolerance("float32", 1) == pytest.approx(2 * 99 * eps)
    assert tolerance("float64", 1) < tolerance("float32", 1) < tolerance("float16", 1) < 0.03


def test_tolerance_of_types_narrower_than_those_that_references_add_in() -> None:
    eps = float(np.finfo(np.float32).eps)

    assert tolerance("bfloat16", 10_000) - tolerance("bfloat16", 1) == pytest.approx(2 * 99 * eps)
    assert tolerance("float16", 1) < tolerance("bfloat16", 1) < tolerance("float8_e4m3fn", 1)


def test_a_quantised_integer_may_be_the_next_step_and_no_other(tmp_path: Path) -> None:
    node = Node("QuantizeLinear", [random((9,)), np.array(0.1, np.float32), np.array(7, np.uint8)], [1, 2])
    model, maps = _model(tmp_path, node), lowered(node.model())
    (right,) = model.reference(model.example_feeds(0)).outputs

    assert is_quantised(maps)
    assert not is_quantised(lowered(Node("Relu", [random((3,))]).model()))
    assert verified_deviation(_answering(model, right.astype(np.uint8) + np.uint8(1)), maps, 0).absolute == 1
    with pytest.raises(DisagreementError, match=r"output 'y0': \d+ at .* against \d+ of an oracle, tolerance 1"):
        verified_deviation(_answering(model, right.astype(np.uint8) + np.uint8(2)), maps, 0)


def test_longest_sum_and_coarsest_type_of_a_program() -> None:
    product = lowered(Node("MatMul", [random((3, 70)), random((70, 2))]).model())
    half = lowered(Node("Cast", [random((3,), "float16")], attributes={"to": 1}).model())
    whole = lowered(Node("Neg", [random((3,), "int64")]).model())

    assert (longest_sum(product), coarsest_dtype(product)) == (70, "float32")
    assert (longest_sum(half), coarsest_dtype(half)) == (1, "float16")
    assert coarsest_dtype(whole) == "float64"


def test_disagreement_names_output_element_values_tolerance_and_reference(tmp_path: Path) -> None:
    node = Node("Relu", [random((2, 3))])
    model = _model(tmp_path, node)
    (value,) = model.example_feeds(0)
    wrong = np.maximum(value, 0)
    wrong[1, 2] += 1
    told = (
        rf"^output 'y0': {np.maximum(value, 0)[1, 2]} at \[1, 2\] against {wrong[1, 2]} of an oracle, "
        r"tolerance \S+ \(ask it again\)$"
    )

    with pytest.raises(DisagreementError, match=told):
        verified_deviation(_answering(model, wrong), lowered(node.model()), 0)


def test_integers_have_to_be_the_same(tmp_path: Path) -> None:
    node = Node("Neg", [random((3,), "int64")])
    model = _model(tmp_path, node)
    (value,) = model.example_feeds(0)

    with pytest.raises(DisagreementError, match="against 1000001 of an oracle, tolerance 0"):
        verified_deviation(_answering(model, np.array([1000001, -value[1], -value[2]])), lowered(node.model()), 0)


def test_undefined_and_infinite_values_agree_with_themselves(tmp_path: Path) -> None:
    node = Node("Log", [random((8,))])
    model = _model(tmp_path, node)

    assert np.isnan(model.reference(model.example_feeds(0)).outputs[0]).any()
    assert verified_deviation(model, lowered(node.model()), 0).absolute < 1e-6


def test_undefined_values_disagree_with_numbers(tmp_path: Path) -> None:
    node = Node("Relu", [random((2,))])
    model = _model(tmp_path, node)

    with pytest.raises(DisagreementError, match="against nan of an oracle"):
        verified_deviation(_answering(model, np.full(2, np.nan, np.float32)), lowered(node.model()), 0)


def test_reference_of_another_shape(tmp_path: Path) -> None:
    node = Node("Relu", [random((2,))])

    with pytest.raises(DisagreementError, match=r"output 'y0': shape \[2\] against \[3\] of an oracle"):
        verified_deviation(_answering(_model(tmp_path, node), np.zeros(3, np.float32)), lowered(node.model()), 0)


def test_onnxruntime_is_asked_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # ONNX's own implementation is wrong for this operator.
    model = _model(tmp_path, Node("LRN", [random((1, 8, 4, 4))], attributes={"size": 5, "alpha": 1.0}))
    feeds = model.example_feeds(0)
    answer = model.reference(feeds)
    monkeypatch.setattr("dfcompile.frontend.onnx.onnxruntime_evaluation.is_installed", lambda: False)
    other = model.reference(feeds)

    assert answer.source.startswith("onnxruntime ")
    assert (other.source, "dfcompile[oracle]" in other.hint) == ("onnx's reference implementation", True)


def test_model_that_onnxruntime_does_not_take_is_left_to_onnx(tmp_path: Path) -> None:
    node = Node("BitwiseNot", [random((3,), "int32")], opset=onnx.defs.onnx_opset_version())
    model = _model(tmp_path, node)

    assert model.reference(model.example_feeds(0)).source == "onnx's reference implementation"


def test_disagreement_is_no_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*_: object) -> tuple[str, tuple[Array, ...]]:
        return "onnxruntime 0", (np.zeros((2, 3), np.float32),)

    onnx.save(Node("Exp", [random((2, 3))]).model(), tmp_path / "model.onnx")
    monkeypatch.setattr("dfcompile.frontend.onnx.onnxruntime_evaluation.evaluated", wrong)

    status = main([str(tmp_path / "model.onnx"), "--pes", "4", "--verify"])

    assert status == 1
    assert capsys.readouterr().err.startswith("dfcompile: error: output 'y0': ")


def test_fold_by_our_own_rule_where_onnx_is_wrong() -> None:
    table, indices = np.arange(12).reshape(3, 4), np.array([[2, 0], [1, -1]])
    model = Node("GatherElements", [table, indices], [0, 1], {"axis": 0}).model()
    model.graph.node.append(onnx.helper.make_node("Add", ["y0", "x"], ["z"], name="add"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, (2, 2)))
    model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="z"))
    program = lowered(model)

    assert [node.coverage for node in program.nodes] == [Coverage.FOLDED, Coverage.COSTED]
    assert interpret(program, {"x": np.zeros((2, 2), np.int64)})["z"].tolist() == [[8, 1], [4, 9]]


def test_fold_that_fails_leaves_the_node_for_a_later_stage() -> None:
    model = Node("LRN", [random((1, 4, 2, 2))], [0], {"size": 3}).model()
    model.graph.node.append(onnx.helper.make_node("Add", ["y0", "x"], ["z"], name="add"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 4, 2, 2)))
    model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="z"))

    assert [node.coverage for node in lowered(model).nodes] == [Coverage.COSTED, Coverage.COSTED]


def test_operator_that_cannot_be_folded_is_named_by_itself(tmp_path: Path) -> None:
    model = Node("Multinomial", [np.ones((4, 3), np.float32)], [0], {"sample_size": 3}).model()
    model.graph.node.append(onnx.helper.make_node("MatMul", ["x", "y0"], ["z"], name="product"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT32, (2, 4)))
    model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="z"))

    with pytest.raises(UnsupportedOpError, match=r"node 'op': Multinomial.*: no expansion for 'Multinomial'"):
        lowered(model)


def test_group_normalization_of_the_first_version() -> None:
    x, scale, bias = random((2, 4, 3)), random((2,), seed=1), random((2,), seed=2)
    grouped = x.reshape(2, 2, 6)
    normal = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    node = Node("GroupNormalization", [x, scale, bias], [1, 2], {"num_groups": 2}, opset=18)
    model = node.model()

    (found,) = interpret(lowered(model), node.feeds).values()

    assert [numpy_helper.to_array(tensor).shape for tensor in model.graph.initializer] == [(2,), (2,)]
    expected = (normal * scale[:, None] + bias[:, None]).reshape(x.shape)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-4, atol=1e-5)


def test_response_normalization_over_more_neighbours_than_there_are() -> None:
    x = random((1, 4, 2, 2))
    node = Node("LRN", [x], attributes={"size": 2**40 + 1, "alpha": 2.0**40, "beta": 1.0, "bias": 0.0})

    (found,) = interpret(lowered(node.model()), node.feeds).values()

    np.testing.assert_allclose(found.astype(np.float64), x / (x**2).sum(axis=1, keepdims=True), rtol=1e-4)


def relative_effect(model: Model) -> float:
    found = effect_of_inputs(model, 0)
    assert found is not None
    return found.relative


def test_effect_of_inputs_is_the_change_of_outputs_by_another_order(tmp_path: Path) -> None:
    node = Node("Add", [np.array([1, 2, 4], np.float32), np.array([5, 5, 5], np.float32)], [1])
    model = replace(_model(tmp_path, node), examples=(np.array([1, 2, 4], np.float32),))

    assert relative_effect(model) == pytest.approx(3 / 9)  # 6, 7, 9 against 9, 6, 7


def test_outputs_that_inputs_do_not_reach_say_so(tmp_path: Path) -> None:
    node = Node("Mul", [np.array([1, 2, 4], np.float32), np.array([0, 0, 0], np.float32)], [1])

    assert relative_effect(_model(tmp_path, node)) == 0


def test_effect_of_inputs_is_not_known_of_one_value_or_where_the_original_refuses(tmp_path: Path) -> None:
    def refusing(inputs: Sequence[Array]) -> Answer:
        if inputs[0][0] != 1:
            raise UserError("no such index")
        return Answer((inputs[0],), "an oracle", "ask it again")

    node = Node("Neg", [np.array([1, 2, 4], np.float32)])
    model = _model(tmp_path, node)
    alike = replace(model, examples=(np.ones(3, np.float32),))
    picky = replace(model, examples=(np.array([1, 2, 4], np.float32),), reference=refusing)

    assert effect_of_inputs(alike, 0) is None
    assert effect_of_inputs(picky, 0) is None

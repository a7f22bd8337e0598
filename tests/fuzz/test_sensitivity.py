"""Rounding is told from a wrong value: what the original magnifies is excused, a fault in an expansion is not."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.lowering.expansions.elementwise import FORMULAS, Formula
from tests.fuzz.comparison import difference
from tests.fuzz.draw import Array, Draw
from tests.fuzz.kind import Case
from tests.fuzz.model_judge import judge_model
from tests.fuzz.oracle import Session, load
from tests.fuzz.outcome import Verdict
from tests.fuzz.sensitivity import only_rounding
from tests.onnx_text import model_from_text

X = np.array([0.5, 1.0, 2.0], np.float32)


def excused(graph: str, changes: dict[int, float], x: Array = X) -> bool:
    """Return whether other values at some places of the result of a graph of x are put down to rounding."""
    model = model_from_text(graph)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    expected = session.run({"x": x}).results
    found = {name: np.array(value) for name, value in expected.items()}
    for place, value in changes.items():
        found["y"].reshape(-1)[place] = value
    assert difference(found, expected, model)
    return only_rounding(model, {"x": x}, found, expected)


def test_step_at_what_was_rounded() -> None:
    graph = "g (float[3] x) => (float[3] y) { e = Exp(x) l = Log(e) y = Floor(l) }"

    assert excused(graph, {1: 1.0})  # log(exp(1)) is a little less in onnxruntime
    assert not excused(graph, {0: 1.0})  # log(exp(1/2)) is not
    assert not excused(graph, {1: 2.0})


def test_step_at_what_is_exact() -> None:
    assert not excused("g (float[3] x) => (float[3] y) { n = Neg(x) y = Floor(n) }", {1: -2.0})


def test_equality_of_what_was_rounded() -> None:
    """That noise makes two numbers the same is a rare chance: they are if rounding could make them."""
    x = np.full(64, 1.0, np.float32)
    last_bit = "g (float[64] x) => (bool[64] y) <float c = {2.7182816}> { e = Exp(x) y = Equal(e, c) }"
    other = "g (float[64] x) => (bool[64] y) <float c = {2.719}> { e = Exp(x) y = Equal(e, c) }"

    assert excused(last_bit, dict.fromkeys(range(64), True), x)
    assert not excused(other, {0: True}, x)
    assert not excused("g (float[64] x) => (bool[64] y) <float c = {1.0000001}> { y = Equal(x, c) }", {0: True}, x)


def test_difference_of_what_is_nearly_equal() -> None:
    steep = "g (float[3] x) => (float[3] y) { e = Exp(x) l = Log(e) d = Sub(l, x) y = Div(d, d) }"
    flat = "g (float[3] x) => (float[3] y) { s = Sigmoid(x) t = Add(s, s) d = Sub(t, s) y = Exp(d) }"

    assert excused(steep, {1: np.nan})  # 0 / 0, or what is nearly 0
    assert not excused(flat, {0: 1.01})


def test_reciprocal_of_a_rounded_zero() -> None:
    graph = "g (float[3] x) => (float[3] y) { s = Sin(x) z = Sub(s, s) m = Selu(z) y = Reciprocal(m) }"

    assert excused(graph, {0: -np.inf})
    assert not excused(graph, {0: 3.0})
    assert not excused("g (float[3] x) => (float[3] y) { y = Reciprocal(x) }", {0: -2.0})


def test_sum_of_a_transform_that_cancels() -> None:
    """A constant has no other frequency, but for what is left of the rounded sums of its terms."""
    x = np.full((1, 60, 1), 0.1, np.float32)
    graph = "g (float[1,60,1] x) => (float[1,60,2] y) { d = DFT<axis=1>(x) y = Sign(d) }"

    assert excused(graph, {6: 2.0}, x) is False
    for value in (-1.0, 0.0, 1.0):
        assert excused(graph, dict.fromkeys(range(2, 120), value), x)
    assert not excused(graph, {0: 0.0}, x)


def test_sum_of_a_transform_of_a_frame_that_cancels() -> None:
    x = np.full((1, 90, 1), 0.1, np.float32)
    constants = "<int64 step = {30}, int64 length = {60}>"
    graph = f'g (float[1,90,1] x) => (float[1,2,31,2] y) {constants} {{ s = STFT(x, step, "", length) y = Sign(s) }}'

    for value in (-1.0, 0.0, 1.0):
        assert excused(graph, dict.fromkeys(range(64, 124), value), x)
    assert not excused(graph, {62: 0.0}, x)


def test_logarithm_of_a_state_that_is_nearly_zero() -> None:
    constants = "<float[1,1,1] w = {1e-9}, float[1,1,1] r = {1.0}>"
    graph = f"g (float[3,1,1] x) => (float[3,1,1,1] y) {constants} {{ s = RNN<hidden_size=1>(x, w, r) y = Log(s) }}"

    assert excused(graph, {0: -21.4}, X.reshape(3, 1, 1))  # onnxruntime has 0 for so little
    assert not excused(graph, {0: -3.0}, X.reshape(3, 1, 1))


def test_every_one_of_many_rounded_zeros() -> None:
    """Each may have either sign, whatever the others have."""
    graph = "g (float[999] x) => (float[999] y) { s = Sin(x) z = Sub(s, s) m = Selu(z) y = Reciprocal(m) }"

    assert excused(graph, dict.fromkeys(range(999), -np.inf), np.arange(999, dtype=np.float32))


def test_sigmoid_that_is_nearly_zero() -> None:
    def swish(changes: dict[int, float]) -> bool:
        model = model_from_text("g (float[3] x) => (float[3] y) { s = Swish(x) y = Reciprocal(s) }")
        model.opset_import[0].version = 24
        x = np.array([-20, 1, 20], np.float32)
        session = load(model.SerializeToString())
        assert isinstance(session, Session)
        expected = session.run({"x": x}).results
        found = {"y": expected["y"].copy()}
        for place, value in changes.items():
            found["y"][place] = value
        return only_rounding(model, {"x": x}, found, expected)

    assert swish({0: -2.4e7})  # 1 / (-20 sigmoid(-20)); onnxruntime's sigmoid is 0
    assert not swish({1: 2.0})


def test_gelu_that_is_nearly_zero() -> None:
    model = model_from_text("g (float[2] x) => (float[2] y) { s = Gelu(x) y = Reciprocal(s) }")
    model.opset_import[0].version = 20
    x = np.array([-4, 1], np.float32)
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    expected = session.run({"x": x}).results

    for factors, is_excused in (((1.01, 1), True), ((1, 1.5), False)):
        found = {"y": expected["y"] * np.array(factors, np.float32)}
        assert only_rounding(model, {"x": x}, found, expected) == is_excused


def test_sigmoid_that_is_rounded_as_a_fraction_of_one() -> None:
    root = "g (float[3] x) => (float[3] y) { s = Sigmoid(x) y = Sqrt(s) }"
    small = np.array([-20, -120, 1], np.float32)  # of the first, onnxruntime's is 0

    assert excused(root, {0: 4.54e-5}, small)
    assert not excused(root, {0: 4.54e-3}, small)
    assert not excused(root, {1: 4.54e-5}, small)
    assert not excused(root, {2: 0.86}, small)


def test_exponential_from_which_one_is_taken() -> None:
    steep = "g (float[3] x) => (float[3] y) { e = Elu<alpha = -1.875>(x) y = Div(e, x) }"
    small = np.array([-2e-4, -2.0, 2.0], np.float32)

    assert excused(steep, {0: -1.8748}, small)
    assert not excused(steep, {0: -1.7}, small)
    assert not excused(steep, {1: -0.8}, small)
    assert not excused(steep, {2: 1.001}, small)


def test_sum_of_which_little_is_left() -> None:
    graph = "g (float[4] x) => (float[1] y) { y = ReduceLogSum(x) }"
    cancelled = np.array([0.25, 1e-40, -0.25, 1e-40], np.float32)

    assert excused(graph, {0: float(np.log(1e-40))}, cancelled)
    assert excused(graph, {0: -np.inf}, cancelled)
    assert not excused(graph, {0: 60.0}, cancelled)
    assert not excused(graph, {0: 1.0}, np.array([0.25, 1e-40, 0.25, 1e-40], np.float32))
    assert not excused(graph, {0: 1.0}, np.array([0.5, 2, -0.25, 1], np.float32))


def test_bias_that_a_normalization_swallows() -> None:
    body = "s = Constant<value = float[1] {1.0}>() n = InstanceNormalization(x, s, b) y = Log(n)"
    graph = "g (float[1,1,1] x) => (float[1,1,1] y) { b = Constant<value = float[1] {BIAS}>() " + body + " }"
    one = np.array([[[3.0]]], np.float32)

    assert excused(graph.replace("BIAS", "1e-30"), {0: float(np.log(1e-30))}, one)
    assert not excused(graph.replace("BIAS", "2.0"), {0: 1.0}, one)


def test_what_is_infinite_is_no_number() -> None:
    far = np.array([-800, 0.5, 800], np.float32)

    assert not excused("g (float[3] x) => (float[3] y) { s = Sigmoid(x) y = Reciprocal(s) }", {0: 7.0}, far)
    assert not excused("g (float[3] x) => (float[3] y) { y = Exp(x) }", {2: 7.0}, far)
    assert not excused("g (float[3] x) => (float[3] y) { s = Sigmoid(x) y = Log(s) }", {1: np.nan}, far)


def test_position_of_equal_elements() -> None:
    ties = np.array([2.0, 2.0, 1.0], np.float32)
    exact = "g (float[3] x) => (int64[1] y) { n = Neg(x) m = Neg(n) y = ArgMax(m) }"
    rounded = "g (float[3] x) => (int64[1] y) { s = Sigmoid(x) y = ArgMax(s) }"

    assert not excused(exact, {0: 1}, ties)
    assert excused(rounded, {0: 1}, ties)
    assert not excused(rounded, {0: 2}, ties)


FAULTS = {
    "Sigmoid": "1.02 / (1 + exp(-a))",
    "Tanh": "tanh(a * 1.02)",
    "Exp": "1.02 * exp(a)",
    "Softsign": "a / (1.02 + abs(a))",
    "Sqrt": "1.02 * sqrt(a)",
    "Ceil": "floor(a) + 1",
    "Round": "floor(a + 0.5)",
}
READERS = ("y = Identity(f)", "s = Mul(f, hundred) y = Floor(s)", "s = Div(hundred, f) y = Round(s)", "y = Sigmoid(f)")


@pytest.mark.parametrize("op_type", FAULTS)
@pytest.mark.parametrize("reader", READERS)
def test_fault_in_an_expansion_is_found(
    op_type: str, reader: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last nodes are steps that read what was rounded: a rule that looks at operators alone excuses all of them."""
    model = model_from_text(
        f"g (float[9] x) => (float[9] y) {{ z = Add(x, x) f = {op_type}(z) {reader} }}",
        hundred=np.array(100, np.float32),
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    case = Case(".onnx", model.SerializeToString(), {"x": np.arange(1, 10, dtype=np.float32) / 4})

    def judged() -> Verdict:
        return judge_model(path, case, Draw("0"), lambda _: None).verdict

    assert judged() is Verdict.SAME
    monkeypatch.setitem(FORMULAS, op_type, Formula(FAULTS[op_type]))
    assert judged() is Verdict.DIFFERENT


INFINITE_SCALE = (
    "g (float[1,1,4] x) => (bool[1,1,4] y, float[1,1,4] z) {{ n = InstanceNormalization(x, scale, one) "
    "y = Less(n, one) t = {op_type}(x) z = Neg(t) }}"
)


@pytest.mark.parametrize(
    ("op_type", "fault", "verdict"),
    [("Tanh", "tanh(a)", Verdict.KNOWN_DIFFERENCE), ("Tanh", "1.02 * tanh(a)", Verdict.DIFFERENT)],
)
def test_what_follows_from_a_listed_difference_is_no_other_one(
    op_type: str, fault: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fault elsewhere in the model is not excused with it."""
    one = np.ones(1, np.float32)
    model = model_from_text(INFINITE_SCALE.format(op_type=op_type), scale=np.full(1, -np.inf, np.float32), one=one)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    case = Case(".onnx", model.SerializeToString(), {"x": np.array([[[1, 2, 3, 6]]], np.float32)})
    monkeypatch.setitem(FORMULAS, op_type, Formula(fault))

    assert judge_model(path, case, Draw("0"), lambda _: None).verdict is verdict


def test_listed_difference_of_what_is_computed_before_the_model_runs(tmp_path: Path) -> None:
    """As an output of the model, which an inner result is not, it would be computed otherwise."""
    model = model_from_text(
        "g () => (float[1,1] z) { y = BatchNormalization(x, s, b, m, v) z = Identity(y) }",
        x=np.full((1, 1), -1, np.float32),
        **{
            name: np.full(1, value, np.float32) for name, value in (("s", np.inf), ("b", -1.5), ("m", -3.625), ("v", 2))
        },
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    case = Case(".onnx", model.SerializeToString(), {})

    assert judge_model(path, case, Draw("0"), lambda _: None).verdict is Verdict.KNOWN_DIFFERENCE

"""Inputs whose value is the same in every run: what it decides is decided when the model is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.frontend import Model, Program, ReadOptions
from dfcompile.frontend.file_kinds.onnx_file import OnnxReference, onnx_model
from dfcompile.frontend.model import reference_answer
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from dfcompile.options.readers import FixedInputs, fixed_inputs
from tests.examples import examples
from tests.interpreter import Array, interpret
from tests.onnx_nodes import TABLE, assert_same, random
from tests.onnx_text import model_from_text

BRANCH = """g (float[2,6] x, bool[1] flag) => (float[2,6] y) {
    y = If(flag) <then_branch = t () => (a) {a = Relu(x)}, else_branch = e () => (b) {b = Neg(x)}>
}"""


def _model(text: str, fixed: FixedInputs) -> Model:
    return onnx_model("g", model_from_text(text), ReadOptions(fixed_inputs=fixed_inputs("--input", fixed)))


def _program(text: str, fixed: FixedInputs) -> Program:
    return _model(text, fixed).program


def _check(text: str, fixed: FixedInputs) -> None:
    """Compare with the original, which is given all inputs."""
    model = _model(text, fixed)
    feeds = model.example_feeds(0)
    assert isinstance(model.reference, OnnxReference)
    answer = reference_answer(model, feeds)
    given = {port.name: value for port, value in zip(model.program.inputs, feeds, strict=True)}
    maps = lower_to_maps(lower_to_canonical(model.program, TABLE, ()), TABLE, ())
    expected: dict[str, Array] = dict(
        zip((port.name for port in model.program.outputs), answer.outputs, strict=True)
    )  # fmt: skip
    assert_same(interpret(maps, given), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("flag", [True, False])
def test_branch(*, flag: bool) -> None:
    program = _program(BRANCH, {"flag": flag})

    assert program.nodes[0].op_type == ("Relu" if flag else "Neg")
    assert [port.name for port in program.inputs] == ["x"]
    (known,) = program.known_inputs
    assert (known.position, known.name, known.value.tolist()) == (1, "flag", [flag])
    _check(BRANCH, [f"flag={str(flag).lower()}"])


@examples(15)
@given(st.integers(0, 4), st.integers(0, 5), st.integers(1, 5))
def test_counts(iterations: int, start: int, largest: int) -> None:
    text = """g (float[4,6] x, int64 n, int64[1] start, int64[1] k, int64[S] shape) => (a, b, c, d) {
        goes = Constant<value = bool {1}>()
        a = Loop(n, goes, x) <body = l (int64 i, bool e, float[4,6] v) => (bool e2, float[4,6] w) {
            e2 = Identity(e)
            w = Tanh(v)
        }>
        end = Constant<value_ints = [6]>()
        axis = Constant<value_ints = [1]>()
        b = Slice(x, start, end, axis)
        c, places = TopK(x, k)
        d = Reshape(x, shape)
    }"""

    _check(text, {"n": iterations, "start": start, "k": [largest], "shape": [2, -1, 3]})


def test_part_of_the_arithmetic() -> None:
    text = "g (float[2,3] x, float[2,3] w, int64[1] axes) => (y) { t = Mul(x, w) y = ReduceSum<keepdims=0>(t, axes) }"

    _check(text, {"w": random((2, 3)), "axes": 1})


def test_value_of_all_elements_and_symbols() -> None:
    text = "g (float[N,3] x, float[N,3] m, int64[N] ids) => (y) { t = Mul(x, m) y = Identity(t) }"

    program = _program(text, ["m=0.5", "ids=1,2"])

    assert [(port.name, port.shape) for port in program.inputs] == [("x", (2, 3))]
    assert program.known_inputs[0].value.tolist() == [[0.5] * 3] * 2


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"flagg": True}, r"input 'flagg': no input of that name \(did you mean 'flag'\?\)"),
        ({"flag": 2}, "input 'flag': value 2 against true or false"),
        ({"flag": [True, False]}, "input 'flag': dimension 0 is given as 2 against 1 in the model"),
        (["flag=1,0"], r"input 'flag': 2 values against one, or 1 of \[1\]"),
        ({"x": np.zeros((3, 4))}, "input 'x': dimension 0 is given as 3 against 2 in the model"),
        ({"x": 1e39}, "input 'x': value 1e[+]39 against float32"),
        ({"x": True}, "input 'x': value true against float32"),
        ({"x": "one"}, "--input x: found 'one' against a number, true or false"),
        ({"x": [1, [2]]}, "input 'x': found list against a number or an array"),
        (["x=one"], "--input x: found 'one' against a number, true or false"),
        (["x="], "--input x: found '' against a number, true or false"),
        (["x"], r"--input: found 'x' against INPUT=VALUE\[,VALUE…\]"),
        (["x=1", "x=2"], "--input: 'x' is given twice"),
    ],
)
def test_what_does_not_fit(fixed: FixedInputs, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        _program(BRANCH, fixed)


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 128), ("uint8", -1), ("int64", 2**63), ("int32", 1.0), ("int32", True)]
)
def test_integers_are_within_their_type(dtype: str, value: float) -> None:
    with pytest.raises(UserError, match=f"input 'n': value .* against {dtype}$"):
        _program(f"g (float[2] x, {dtype} n) => (float[2] y) {{ y = Relu(x) }}", {"n": value})

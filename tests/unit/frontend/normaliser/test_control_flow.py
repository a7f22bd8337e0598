"""Loops, scans, branches and sequences that constants and static shapes decide keep their meaning, unrolled."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend import read_model
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import lowered

X = np.array([[-1.0, 2.0, 0.5], [3.0, -4.0, 0.25]], np.float32)
BODY = "body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] w)"
MODELS = {
    "loop that passes its condition on": (
        f"<int64 n = {{3}}, bool t = {{1}}> {{ y = Loop(n, t, x) <{BODY} {{ u = Mul(v, v) w = Sub(u, x) }}> }}"
    ),
    "loop without condition": f'<int64 n = {{2}}> {{ y = Loop(n, "", x) <{BODY} {{ w = Neg(v) }}> }}',
    "loop of no iteration": f'<int64 n = {{0}}> {{ z = Loop(n, "", x) <{BODY} {{ w = Neg(v) }}> y = Exp(z) }}',
    "loop that its condition ends": (
        '<bool t = {1}, float limit = {2.5}, float one = {1}, float start = {0}> { s, y = Loop("", t, start, x) '
        "<body = b (int64 i, bool c, float k, float[2,3] v) => (bool d, float n, float[2,3] w) "
        "{ n = Add(k, one) d = Less(n, limit) w = Mul(v, x) }> }"
    ),
    "loop that counts": (
        '<int64 n = {4}> { y = Loop(n, "", x) <body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] w) '
        "{ f = Cast<to=1>(i) w = Add(v, f) }> }"
    ),
    "loop whose iterations are shown": (
        '<int64 n = {3}> { z, s = Loop(n, "", x) <body = b (int64 i, bool c, float[2,3] v) => '
        "(bool c, float[2,3] w, float[2] r) <int64[1] a = {1}> "
        "{ w = Mul(v, x) r = ReduceSum<keepdims=0>(w, a) }> p = ReduceSum<keepdims=0>(s) y = Add(z, p) }"
    ),
    "branches in a loop": (
        '<int64 n = {3}, int64 one = {1}> { y = Loop(n, "", x) <body = b (int64 i, bool c, float[2,3] v) => '
        "(bool c, float[2,3] w) { q = Equal(i, one) w = If(q) <then_branch = t () => (float[2,3] a) { a = Neg(v) }, "
        "else_branch = e () => (float[2,3] a) { s = Add(v, x) a = Mul(s, v) }> }> }"
    ),
    "loop in a loop": (
        '<int64 n = {2}> { y = Loop(n, "", x) <body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] w) '
        '{ w = Loop(n, "", v) <body = d (int64 j, bool e, float[2,3] p) => (bool e, float[2,3] q) '
        "{ k = Add(i, j) f = Cast<to=1>(k) t = Add(p, f) q = Mul(t, v) }> }> }"
    ),
    "as many iterations as rows": (
        '<int64 zero = {0}> { s = Shape(x) n = Gather(s, zero) y = Loop(n, "", x) '
        "<body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] w) { w = Mul(v, x) }> }"
    ),
    "scan": (
        "<float[3] h = {1, 2, 3}> { l, y = Scan<num_scan_inputs=1, body = b (float[3] s, float[3] e) => "
        "(float[3] t, float[3] u) { t = Add(s, e) u = Mul(t, e) }>(h, x) }"
    ),
    "scan of columns, from the end": (
        "<float[2] h = {1, 2}> { l, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], "
        "scan_output_axes=[-1], scan_output_directions=[1], body = b (float[2] s, float[2] e) => "
        "(float[2] t, float[2] u) { t = Add(s, e) u = Mul(t, e) }>(h, x) }"
    ),
    "sequence that a loop grows": (
        '<int64 n = {3}> { e = SequenceEmpty() s, z = Loop(n, "", e, x) <body = b (int64 i, bool c, '
        "seq(float[2,3]) q, float[2,3] v) => (bool c, seq(float[2,3]) r, float[2,3] w) "
        "{ w = Mul(v, x) r = SequenceInsert(q, w) }> t = ConcatFromSequence<axis=0, new_axis=1>(s) "
        "p = ReduceSum<keepdims=0>(t) y = Mul(p, x) }"
    ),
    "parts of a split, by position": (
        "<int64 at = {-1}, int64[2] l = {1, 2}> { s = SplitToSequence<axis=1>(x, l) p = SequenceAt(s, at) "
        "q = Exp(p) r = SequenceInsert(s, q, at) u = SequenceErase(r, at) y = ConcatFromSequence<axis=1>(u) }"
    ),
    "every row of a split": (
        "<int64 at = {1}> { s = SplitToSequence<axis=0, keepdims=0>(x) p = SequenceAt(s, at) y = Mul(p, x) }"
    ),
    "what is there": (
        "{ o = Optional(x) h = OptionalHasElement(o) g = OptionalGetElement(o) y = If(h) <then_branch = t () => "
        "(float[2,3] a) { a = Neg(g) }, else_branch = e () => (float[2,3] a) { a = Exp(x) }> }"
    ),
}  # fmt: skip


def model_of(graph: str, opset: int = 18) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float y) {graph}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def assert_as_onnxruntime(model: onnx.ModelProto) -> None:
    answer = evaluated(model, {"x": X})
    assert answer is not None
    expected = answer[1][0]
    found = interpret(lowered(model), {"x": X})["y"]

    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-5)


@pytest.mark.parametrize("graph", MODELS.values(), ids=MODELS)
def test_unrolled_as_onnxruntime_runs_it(graph: str) -> None:
    assert_as_onnxruntime(model_of(graph))


@pytest.mark.parametrize("name", ["parts of a split, by position", "every row of a split", "loop without condition"])
def test_operator_set_whose_axes_are_attributes(name: str) -> None:
    assert_as_onnxruntime(model_of(MODELS[name], 11))


@examples(30)
@given(st.lists(st.sampled_from(["Mul(v, x)", "Sub(v, x)", "Abs(v)", "Neg(v)"]), min_size=1, max_size=4), st.data())
def test_random_bodies(formulas: list[str], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(1, 3)) for _ in formulas]
    nest = "float[2,3] w"
    body = ""
    for level, (formula, count) in enumerate(zip(formulas, counts, strict=True)):
        inner = body.replace("v0", f"m{level}") if body else f"w = Identity(m{level})"
        body = (
            f'n{level} = Constant<value_int = {count}>() w = Loop(n{level}, "", v0) <body = b{level} '
            f"(int64 i{level}, bool c{level}, float[2,3] v) => (bool c{level}, {nest}) "
            f"{{ m{level} = {formula} {inner} }}>"
        )  # fmt: skip
    graph = "{ v0 = Identity(x) " + body.replace("w = Loop", "y = Loop", 1) + " }"

    assert_as_onnxruntime(model_of(graph))


def test_constants_of_a_body_stand_once() -> None:
    graph = (
        '<int64 n = {5}> { y = Loop(n, "", x) <body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] w) '
        "<float[3] k = {1, 2, 3}> { q = Constant<value = float[3] {4, 5, 6}>() t = Mul(v, k) w = Add(t, q) }> }"
    )  # fmt: skip
    program = lowered(model_of(graph))

    assert len(program.parameters) == 2


REFUSED: Mapping[str, str] = {
    f'g (float[2,3] x, int64 n) => (float[2,3] y) {{ [l] y = Loop(n, "", x) <{BODY} {{ w = Neg(v) }}> }}': (
        "node 'l': Loop holds a graph against a plain operator "
        "(its number of iterations 'n' depends on an input, which --input can fix)"
    ),
    f'g (float[2,3] x, bool t) => (float[2,3] y) {{ [l] y = Loop("", t, x) <{BODY} {{ w = Neg(v) }}> }}': (
        "node 'l': Loop holds a graph against a plain operator "
        "(its condition 't' depends on an input, which --input can fix)"
    ),
    'g (float x, float z) => (float y) <bool t = {1}> { [l] y = Loop("", t, x) <body = b (int64 i, bool c, float v) '
    "=> (bool d, float w) { d = Less(v, z) w = Neg(v) }> }": (
        "node 'l': Loop holds a graph against a plain operator "
        "(its condition after 1 iterations depends on an input, which --input can fix)"
    ),
    f'g (float[2,3] x) => (float[2,3] y) <int64 n = {{15000}}> {{ [l] y = Loop(n, "", x) '
    f"<{BODY} {{ u = Neg(v) w = Exp(u) }}> }}": (
        "node 'l': unrolling gives more than 20000 nodes"
    ),
    'g (float[2,3] x) => (float[2,3] y) <bool t = {1}> { [l] y = Loop("", t, x) '
    "<body = b (int64 i, bool c, float[2,3] v) => (bool c, float[2,3] v) { }> }": (
        "node 'l': unrolling gives more than 20000 iterations"
    ),
    "g (float[2,3] x, int64 p) => (float[2,3] y) { s = SequenceConstruct(x, x) [a] y = SequenceAt(s, p) }": (
        "node 'a': position 'p' of SequenceAt depends on an input"
    ),
    "g (float[2,3] x) => (float[2,3] y) <int64 p = {2}> { s = SequenceConstruct(x, x) [a] y = SequenceAt(s, p) }": (
        "node 'a': position 2 against -2 to 1"
    ),
    "g (float[2,3] x) => (seq(float[2,3]) s) { s = SequenceConstruct(x, x) }": (
        "output 's': sequence against a tensor (only dense tensors can be compiled)"
    ),
    "g (float[2,3] x) => (float[2,3] y) { s = SequenceConstruct(x, x) [r] y = Relu(s) }": (
        "node 'r': Relu reads a sequence against a tensor"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "message"), REFUSED.items(), ids=REFUSED.values())
def test_what_inputs_decide_is_refused_by_name(graph: str, message: str, write_model: Callable[[str], Path]) -> None:
    with pytest.raises(UserError) as caught:
        read_model(write_model(graph))

    assert str(caught.value) == message


def test_random_numbers_decide_nothing(write_model: Callable[[str], Path]) -> None:
    path = write_model(
        "g (float[2] x) => (float[2] y) <float half = {0.5}> { r = RandomUniform<shape=[1]>() c = Less(r, half) "
        "[i] y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) }, "
        "else_branch = e () => (float[2] a) { a = Exp(x) }> }"
    )

    with pytest.raises(UnsupportedOpError, match="node 'i': If holds a graph"):
        read_model(path)

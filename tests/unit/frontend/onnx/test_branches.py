"""An If with a constant condition is the branch that it takes, and everything in that branch keeps its meaning."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend import read_model
from dfcompile.frontend.onnx.reference_evaluation import evaluate
from tests.interpreter import interpret
from tests.onnx_nodes import lowered

X = np.array([[-1.0, 2.0], [3.0, -4.0]], np.float32)
BRANCHES = "else_branch = e () => (float[2,2] b) { b = Neg(x) }, then_branch = t () => (float[2,2] a) { a = Relu(x) }"
MODELS = {
    "initializer": f"<bool c = {{0}}> {{ y = If(c) <{BRANCHES}> }}",
    "initializer, taken": f"<bool c = {{1}}> {{ y = If(c) <{BRANCHES}> }}",
    "computed of constants": f"<bool c = {{1}}> {{ n = Not(c) y = If(n) <{BRANCHES}> }}",
    "branch gives a value from around it": (
        "<bool c = {1}> { y = If(c) <then_branch = t () => (float[2,2] x) { }, "
        "else_branch = e () => (float[2,2] b) { b = Neg(x) }> }"
    ),
    "one result twice": (
        "<bool c = {1}> { u, v = If(c) <then_branch = t () => (float[2,2] a, float[2,2] a) { a = Exp(x) }, "
        "else_branch = e () => (float[2,2] b, float[2,2] d) { b = Neg(x) d = Abs(x) }> y = Add(u, v) }"
    ),
    "inner names that the model has": (
        "<bool c = {1}> { a = Exp(x) z = If(c) <then_branch = t () => (float[2,2] q) "
        "<float[2] w = {1, 2}> { p = Mul(x, w) q = Add(p, a) }, else_branch = e () => (float[2,2] q) { q = Neg(x) }> "
        "p = Sub(z, a) w = Abs(p) y = Sub(w, z) }"
    ),
    "nested": (
        "<bool c = {1}, bool d = {0}> { y = If(c) <then_branch = t () => (float[2,2] r) { p = Exp(x) r = If(d) "
        "<then_branch = tt () => (float[2,2] s) { s = Neg(p) }, else_branch = te () => (float[2,2] s) "
        "{ q = Abs(p) s = Add(p, q) }> }, else_branch = e () => (float[2,2] r) { r = Neg(x) }> }"
    ),
    "twice the same names": (
        f"<bool c = {{1}}> {{ u = If(c) <{BRANCHES}> v = If(c) <{BRANCHES}> y = Add(u, v) }}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("graph", MODELS.values(), ids=MODELS)
def test_constant_condition_takes_its_branch(graph: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[2,2] x) => (float[2,2] y) {graph}'
    )
    expected = evaluate(model, {"x": X}, "reference")[0]

    found = interpret(lowered(model), {"x": X})["y"]

    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-6)


def test_shape_of_a_constant_decides() -> None:
    graph = "<float[3] w, int64[1] three = {3}> { n = Shape(w) c = Equal(n, three) y = If(c) <" + BRANCHES + "> }"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[2,2] x) => (float[2,2] y) {graph}'
    )
    del model.graph.initializer[:]
    model.graph.initializer.extend(
        [numpy_helper.from_array(np.zeros(3, np.float32), "w"), numpy_helper.from_array(np.array([3]), "three")]
    )

    np.testing.assert_array_equal(interpret(lowered(model), {"x": X})["y"], np.maximum(X, 0))


def test_condition_of_an_input_is_refused_by_name(write_model: Callable[[str], Path]) -> None:
    path = write_model(f"g (float[2,2] x, bool c) => (float[2,2] y) {{ [choice] y = If(c) <{BRANCHES}> }}")

    with pytest.raises(UnsupportedOpError, match="node 'choice': If holds a graph against a plain operator"):
        read_model(path)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("bool[2] c = {1, 0}", r"node 'choice': condition 'c' is bool \[2\] against one truth value"),
        ("int64 c = {1}", r"node 'choice': condition 'c' is int64 \[\] against one truth value"),
    ],
)
def test_condition_that_is_no_truth_value(condition: str, message: str, write_model: Callable[[str], Path]) -> None:
    path = write_model(f"g (float[2,2] x) => (float[2,2] y) <{condition}> {{ [choice] y = If(c) <{BRANCHES}> }}")

    with pytest.raises(UserError, match=message):
        read_model(path)


def test_branch_with_another_number_of_results(write_model: Callable[[str], Path]) -> None:
    path = write_model(
        f"g (float[2,2] x) => (float[2,2] y) <bool c = {{1}}> {{ [choice] y, z = If(c) <{BRANCHES}> }}"
    )  # fmt: skip

    with pytest.raises(UserError, match="node 'choice': 1 results in 'then_branch' against 2 results of If"):
        read_model(path)

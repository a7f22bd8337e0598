"""Whether a model consists of parts is known from its loops, and true of what it computes."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from dfcompile.errors import UserError
from dfcompile.frontend import Program, ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.independence import DividedModel
from tests.onnx_text import model_from_text

SIZE, COUNT = 12, 3
WEIGHT = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)

INDEPENDENT = {
    "element by element": "g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }",
    "a row each": "g (float[N,4] x) => (float[N,4] y) { y = Softmax<axis = 1>(x) }",
    "a product with weights": "g (float[N,4] x) => (float[N,4] y) { a = MatMul(x, w) y = Add(a, x) }",
    "along an inner axis": "g (float[4,N] x) => (float[4,N] y) { y = MatMul(w, x) }",
    "a matrix each": "g (float[N,4,4] x) => (float[N,4,4] y) { t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(x, t) }",
    "two inputs": "g (float[N,4] x, float[N,4] z) => (float[N,4] y) { a = Mul(x, z) y = Neg(a) }",
    "an image each": "g (float[N,1,4,4] x) => (float[N,1,4,4] y) { y = MaxPool<kernel_shape = [1, 1]>(x) }",
    "moved to another axis": "g (float[N,4] x) => (float[4,N] y) { t = Transpose<perm = [1, 0]>(x) y = Exp(t) }",
}
DEPENDENT = {
    "a sum over all": "g (float[N,4] x) => (float[1,4] y) { y = ReduceSum(x, axis) }",
    "a share of all": "g (float[N,4] x) => (float[N,4] y) { y = Softmax<axis = 0>(x) }",
    "each with each": "g (float[N,4] x) => (float[N,N] y) { t = Transpose<perm = [1, 0]>(x) y = MatMul(x, t) }",
    "less the mean": (
        "g (float[N,4] x) => (float[N,4] y) { m = ReduceMean<keepdims = 1>(x, axis) r = Exp(x) y = Sub(r, m) }"
    ),
    "the order changed": "g (float[N,4] x) => (float[N,4] y) { y = Slice(x, last, before, axis, back) }",
    "one result for all": "g (float[N,4] x) => (float[N,4] y, float[4,4] z) { y = Relu(x) z = Neg(w) }",
}
PARAMETERS = {
    "w": WEIGHT, "axis": np.array([0]), "last": np.array([-1]), "before": np.array([-(2**31)]), "back": np.array([-1]),
}  # fmt: skip


def _model(graph: str) -> onnx.ModelProto:
    return model_from_text(graph, **{name: value for name, value in PARAMETERS.items() if name in graph})


def _program(model: onnx.ModelProto, size: int) -> Program:
    return program_of("g", model, ReadOptions(dims={"N": size}))


def _consists_of_parts(model: onnx.ModelProto) -> bool:
    divided = DividedModel(_program(model, SIZE), registered_expansions())
    return divided.consists_of(_program(model, SIZE // COUNT), COUNT)


def _is_joined(model: onnx.ModelProto) -> bool:
    """Return whether the results are those of all parts, one behind the other along one of their axes."""
    run, rng = ReferenceEvaluator(model), np.random.default_rng(0)
    values: dict[str, np.ndarray] = {}
    parts: list[dict[str, np.ndarray]] = [{} for _ in range(COUNT)]
    for port in model.graph.input:
        sizes = [dim.dim_value or SIZE for dim in port.type.tensor_type.shape.dim]
        axis = next(at for at, dim in enumerate(port.type.tensor_type.shape.dim) if not dim.dim_value)
        values[port.name] = rng.normal(size=sizes).astype(np.float32)
        for part, own in zip(parts, np.split(values[port.name], COUNT, axis), strict=True):
            part[port.name] = own
    found = [_run(run, part) for part in parts]

    def is_joined(result: np.ndarray, pieces: Sequence[np.ndarray]) -> bool:
        joined = (np.concatenate(pieces, axis) for axis in range(result.ndim))
        return any(each.shape == result.shape and np.allclose(each, result) for each in joined)

    return all(map(is_joined, _run(run, values), zip(*found, strict=True)))


def _run(run: ReferenceEvaluator, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(result) for result in run.run(None, dict(given))]


@pytest.mark.parametrize("graph", INDEPENDENT.values(), ids=INDEPENDENT.keys())
def test_independent_parts_are_known(graph: str) -> None:
    model = _model(graph)

    assert _is_joined(model)
    assert _consists_of_parts(model)


@pytest.mark.parametrize("graph", DEPENDENT.values(), ids=DEPENDENT.keys())
def test_parts_that_depend_on_one_another_are_not_taken_for_independent(graph: str) -> None:
    model = _model(graph)

    assert not _is_joined(model)
    assert not _consists_of_parts(model)


def test_model_with_other_numbers_for_another_size_is_not_taken_for_parts() -> None:
    """Divided by the size of the dimension, which is a constant of each program."""
    graph = "g (float[N,4] x) => (float[N,4] y) { s = Shape<end = 1>(x) f = Cast<to = 1>(s) y = Div(x, f) }"

    assert not _consists_of_parts(_model(graph))


def test_other_sizes_are_no_parts() -> None:
    model = _model(INDEPENDENT["a row each"])
    divided = DividedModel(_program(model, SIZE), registered_expansions())

    assert divided.consists_of(_program(model, 6), 2)
    assert not divided.consists_of(_program(model, 6), 3)
    assert not divided.consists_of(_program(model, SIZE), 2)


STEPS = (
    "Relu(a)", "Neg(a)", "Add(a, a)", "Mul(a, b)", "MatMul(a, w)", "MatMul(w, a)", "Transpose<perm = [1, 0]>(a)",
    "Softmax<axis = 0>(a)", "Softmax<axis = 1>(a)", "ReduceMax<keepdims = 1>(a, axis)", "CumSum(a, zero)", "Add(a, b)",
    "Concat<axis = 0>(a, a)", "Concat<axis = 1>(a, b)", "Reshape(a, flat)", "Reshape(a, halves)",
    "Gather<axis = 0>(a, last)", "Slice(a, last, before, axis, back)",
)  # fmt: skip
SHAPES = {"flat": np.array([-1, 2]), "halves": np.array([2, -1]), "zero": np.array(0)}


@given(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), places=st.lists(st.integers(0, 9), min_size=8))
@settings(max_examples=60, deadline=None)
def test_whatever_is_taken_for_parts_is_joined(steps: list[str], places: list[int]) -> None:
    """Of random models that some operator may refuse."""
    names, body = ["x"], []
    for number, step in enumerate(steps):
        text = re.sub(r"\bb\b", names[places[number] % len(names)], re.sub(r"\ba\b", names[-1], step))
        names.append(f"r{number}")
        body.append(f"r{number} = {text}")
    graph = f"g (float[N,4] x) => (float[P,Q] y) {{ {' '.join(body)} y = Exp({names[-1]}) }}"
    model = model_from_text(graph, **{name: value for name, value in (PARAMETERS | SHAPES).items() if name in graph})
    try:
        is_taken = _consists_of_parts(model)
    except UserError:
        return  # shapes that do not fit

    assert not is_taken or _is_joined(model)

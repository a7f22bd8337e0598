"""What the interpreter of the unit tests says to programs, once more from the code that is generated and compiled."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dfcompile.driver import explore
from dfcompile.errors import DisagreementError
from dfcompile.frontend import Answer, Model, read_model
from dfcompile.lowering import Reduction, apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.lowering.operators import MatMul, Reduce
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from dfcompile.records import replace
from dfcompile.testing.expansions import check_expansion
from tests.asked_options import asked
from tests.onnx_files import save_convolution
from tests.onnx_nodes import TABLE, Node, assert_same, lowered, random
from tests.onnx_text import program_from_text


@pytest.mark.parametrize("name", ["mv", "op", "lmv", "ip", "columns", "rows"])
def test_every_product_is_numpys(name: str) -> None:
    check_expansion(MatMul(), name, inputs=[(3, 4), (4, 5)], output=(3, 5), reference=np.matmul)


def test_largest_elements_of_rows() -> None:
    operator = Reduce(Reduction.MAX, axes=(1,), keepdims=False)

    check_expansion(operator, "map", inputs=[(5, 7)], output=(5,), reference=lambda x: x.max(axis=1))


def test_elements_at_indices() -> None:
    gather = Node("GatherElements", [random((3, 4)), np.array([[-1, 0, 2, 1]])])

    assert_same(run_program(lowered(gather.model()), gather.feeds), gather.reference(), 0, 0)


@pytest.mark.parametrize(("axis", "shape"), [(0, "2,3,6"), (1, "4,2,3")])
def test_rows_at_indices_of_the_run(axis: int, shape: str) -> None:
    table, indices = np.arange(24, dtype=np.float32).reshape(4, 6), np.array([[0, 3, -1], [2, -4, 1]])
    text = f"g (int64[2,3] i) => (float[{shape}] y) {{ y = Gather<axis={axis}>(t, i) }}"
    maps = lower_to_maps(lower_to_canonical(program_from_text(text, t=table), TABLE), TABLE)

    assert np.array_equal(run_program(maps, {"i": indices})["y"], np.take(table, indices, axis=axis))


def test_fused_integers_wrap_around_and_conversions_happen_in_between() -> None:
    graph = (
        "g (uint8[4] x, uint8[4] z) => (float[4] y) { t = Add(x, z) u = Div(t, z) v = Cast <to = 1> (u) y = Div(v, w) }"
    )
    inputs = {"x": np.array([250, 7, 9, 200], np.uint8), "z": np.array([10, 2, 4, 100], np.uint8)}
    program = lower_to_canonical(program_from_text(graph, w=np.array([2.0], np.float32)), TABLE)
    fused = lower_to_maps(apply_passes(program, [fuse_elementwise]), TABLE)

    assert run_program(fused, inputs)["y"].tolist() == [0.0, 2.0, 1.5, 0.0]


MACROS = (
    *("M_PI", "EOF", "RAND_MAX", "INT_MAX", "CHAR_BIT", "BUFSIZ", "SEEK_SET", "FLT_EPSILON", "HUGE_VAL", "stdin"),
    *("stdout", "linux", "unix", "__LINE__", "_OPENMP", "I", "CLOCKS_PER_SEC", "array_0", "array0", "lowered"),
)


def test_tensors_may_be_called_what_cpp_has_a_meaning_for() -> None:
    """A chain of additions whose tensors have these names, in one program."""
    names = ["x", *MACROS]
    nodes = " ".join(f"{after} = Add({before}, {before})" for before, after in pairwise(names))
    program = program_from_text(f"M_E (float[2] x) => (float[2] {names[-1]}) {{ {nodes} }}")
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)

    (found,) = run_program(maps, {"x": np.array([1.0, -3.0], np.float32)}).values()

    assert found.tolist() == [2.0 ** len(MACROS), -3.0 * 2.0 ** len(MACROS)]


def test_folded_transpose_is_a_parameter_in_row_order() -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = program_from_text("g (float[2] x) => (float[3,2] y) { t = Transpose(w)  y = Add(t, x) }", w=weights)
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)

    np.testing.assert_array_equal(run_program(maps, {"x": np.zeros(2, np.float32)})["y"], weights.T)


def test_lowered_model_that_computes_something_else_is_told_with_the_reference(tmp_path: Path) -> None:
    path = save_convolution(tmp_path / "small.onnx", shape=(1, 1, 8, 8), filters=(2, 1, 3, 3))

    def wrong(inputs: object) -> Answer:
        del inputs
        return Answer((np.zeros((1, 2, 6, 6), np.float32),), "a sloth", "wake it")

    def read_wrong(path: Path, options: object) -> Model:
        del options
        return replace(read_model(path), reference=wrong)

    told = r"output 'y': \S+ at \[0, \d, \d, \d\] against 0.0 of a sloth, tolerance 5.\d+e-05 \(wake it\)"
    with pytest.raises(DisagreementError, match=told):
        explore(asked(path, (4,), verify=True), read=read_wrong)

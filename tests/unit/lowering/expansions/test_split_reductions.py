"""Reductions, and the k of matrix products, in parts: partial results, and a tree of tasks that combines them."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract
from dfcompile.lowering import CanonicalOperator, Choice, Reduction, lower_to_canonical, lower_to_maps
from dfcompile.lowering.expansions.own_loops import PARTS
from dfcompile.lowering.operators import MatMul, Reduce
from dfcompile.scheduler import ScheduleOptions, schedule
from dfcompile.testing.expansions import canonical_program
from tests.examples import examples
from tests.interpreter import Array, interpret
from tests.onnx_nodes import TABLE, Node, lowered, random
from tests.onnx_text import program_from_text

NUMPY: Final[Mapping[Reduction, Callable[..., Array]]] = {
    Reduction.SUM: np.sum,
    Reduction.PRODUCT: np.prod,
    Reduction.MAX: np.max,
    Reduction.MIN: np.min,
}
parts_of = st.sampled_from(PARTS[:6])
extents = st.integers(1, 40)


def check_close(found: Array, expected: Array, tolerance: float) -> None:
    """Compare numbers of which none is much larger than the others."""
    assert found.shape == expected.shape
    error = np.abs(np.subtract(found, expected, dtype=np.float64))
    assert np.max(error) <= tolerance * (1 + np.max(np.abs(expected.astype(np.float64))))


def numbers(shape: Sequence[int], dtype: str = "float64") -> Array:
    generator = np.random.default_rng(prod(shape))
    return (generator.integers(-3, 4, shape) if dtype.startswith("i") else generator.uniform(0.4, 0.6, shape)).astype(
        dtype
    )


@examples(60)
@given(
    st.sampled_from(list(NUMPY)),
    st.lists(st.integers(1, 4), max_size=2),
    extents,
    parts_of,
    st.sampled_from(["float64", "int32", "int8"]),
    st.data(),
)
def test_reduction_in_parts_is_numpys(
    reduction: Reduction, shape: list[int], longest: int, parts: int, dtype: str, data: st.DataObject
) -> None:
    shape.insert(data.draw(st.integers(0, len(shape))), longest)
    axes = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    program = canonical_program(Reduce(reduction, axes, expression="a * 2"), [tuple(shape)], kept, dtype)
    maps = lower_to_maps(program, TABLE, [Choice("Reduce", f"split{{parts={parts}}}")])
    x = numbers(shape, dtype)

    found = interpret(maps, {"x0": x})["y"]

    doubled = (x * 2).astype(dtype)
    expected = NUMPY[reduction](doubled, axis=axes, keepdims=True).astype(dtype)
    check_close(found, expected, 1e-12)
    extract(maps.sdfg)  # verifies that every task is canonical


@examples(50)
@given(
    st.lists(st.integers(1, 3), max_size=2), st.integers(1, 4), extents, st.integers(1, 4), parts_of,
    st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
def test_product_in_parts_is_numpys(
    batch: list[int], n: int, k: int, m: int, parts: int, transposed: tuple[bool, bool]
) -> None:
    a_shape = (*batch, *((k, n) if transposed[0] else (n, k)))
    b_shape = (*batch, *((m, k) if transposed[1] else (k, m)))
    program = canonical_program(MatMul(*transposed), [a_shape, b_shape], (*batch, n, m), dtype="float64")
    maps = lower_to_maps(program, TABLE, [Choice("MatMul", f"split-k{{parts={parts}}}")])
    generator = np.random.default_rng(n * m * k)
    a, b = generator.uniform(-1, 1, a_shape), generator.uniform(-1, 1, b_shape)
    expected = (np.swapaxes(a, -1, -2) if transposed[0] else a) @ (np.swapaxes(b, -1, -2) if transposed[1] else b)

    found = interpret(maps, {"x0": a, "x1": b})["y"]

    check_close(found, expected, 1e-12)
    extract(maps.sdfg)


def lowered_dag(
    operator: CanonicalOperator, name: str, shapes: Sequence[tuple[int, ...]], pieces: int | None = None
) -> CanonicalDag:
    result = (1,) if isinstance(operator, Reduce) else (shapes[0][0], shapes[1][1])
    program = canonical_program(operator, shapes, result)
    maps = lower_to_maps(program, TABLE, [Choice(type(operator).__name__, name)])
    return extract(maps.sdfg, ExtractionOptions(granularity=Granularity(pieces=pieces)))


@pytest.mark.parametrize(
    ("elements", "parts", "tasks", "critical_path"),
    [
        (4096, 16, 16 + 4 + 1, 256 + 2),
        (4096, 256, 256 + 64 + 16 + 4 + 1, 16 + 4),
        (37, 8, 7 + 1 + 1 + 1, 5 + 2),  # seven parts of five elements and a rest of two; one level, then what is left
        (3, 2, 1, 3),  # too few for two parts
    ],
)
def test_parts_and_the_levels_of_the_tree_are_tasks(elements: int, parts: int, tasks: int, critical_path: int) -> None:
    dag = lowered_dag(Reduce(Reduction.SUM, (0,)), f"split{{parts={parts}}}", [(elements,)])

    assert dag.tasks_count == tasks
    assert schedule(dag, ScheduleOptions(pes=512)).makespan_cycles == critical_path


def test_work_is_that_of_the_whole_and_of_the_tree() -> None:
    dag = lowered_dag(MatMul(), "split-k{parts=16}", [(1, 64), (64, 8)], pieces=8)

    assert int(dag.work.sum()) == 8 * (64 + 4 + 1)


SPLIT = [Choice("Reduce", "split{parts=4}"), Choice("MatMul", "split-k{parts=4}")]


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes"),
    [
        ("Softmax", [(3, 50)], {}),
        ("LogSoftmax", [(3, 50)], {}),
        ("LayerNormalization", [(2, 65), (65,), (65,)], {}),
        ("LpNormalization", [(4, 33)], {}),
        ("InstanceNormalization", [(1, 2, 9, 7), (2,), (2,)], {}),
        ("ReduceMean", [(4, 33)], {}),
        ("ReduceL2", [(4, 33)], {}),
        ("ReduceLogSumExp", [(4, 33)], {}),
        ("GlobalAveragePool", [(1, 3, 7, 7)], {}),
        ("Gemm", [(2, 33), (33, 3)], {}),
        ("Conv", [(1, 4, 6, 6), (2, 4, 3, 3)], {}),
    ],
)
def test_operators_made_of_reductions_and_products_follow(
    op_type: str, shapes: Sequence[tuple[int, ...]], attributes: dict[str, int]
) -> None:
    node = Node(op_type, [random(shape) for shape in shapes], attributes=attributes)
    whole, parts = lowered(node.model()), lowered(node.model(), SPLIT)

    (expected,) = interpret(whole, node.feeds).values()
    (found,) = interpret(parts, node.feeds).values()

    check_close(found, expected, 2e-6)
    assert extract(parts.sdfg).tasks_count > extract(whole.sdfg).tasks_count


def test_softmax_of_one_row_is_faster_in_parts() -> None:
    program = program_from_text("g (float[1,4096] x) => (float[1,4096] y) { y = Softmax(x) }")
    options = ExtractionOptions(granularity=Granularity(pieces=64))
    makespans = []
    for choices in ([], [Choice("Reduce", "split{parts=64}")]):
        maps = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
        makespans.append(schedule(extract(maps.sdfg, options), ScheduleOptions(pes=64)).makespan_cycles)

    assert 10 * makespans[1] < makespans[0]

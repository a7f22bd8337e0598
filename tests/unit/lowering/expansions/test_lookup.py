import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from tests.interpreter import interpret
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(("axis", "shape"), [(0, "2,3,6"), (1, "4,2,3")])
def test_rows_at_indices_of_the_run(axis: int, shape: str) -> None:
    text = f"g (int64[2,3] i) => (float[{shape}] y) {{ y = Gather<axis={axis}>(t, i) }}"
    maps = lower_to_maps(lower_to_canonical(program_from_text(text, t=VALUES), TABLE), TABLE)
    indices = np.array([[0, 3, -1], [2, -4, 1]])
    expected = np.take(VALUES, indices, axis=axis)

    assert np.array_equal(interpret(maps, {"i": indices})["y"], expected)


def test_only_the_elements_that_are_read_are_traffic() -> None:
    text = "g (int64[2,3] i) => (float[2,3,6] y) { y = Gather(t, i) }"
    dag = extract(lower_to_maps(lower_to_canonical(program_from_text(text, t=VALUES), TABLE), TABLE).sdfg)

    assert dag.tasks_count == 1
    assert dag.edge_volume.tolist() == [36, 36, 36]  # indices, table, result
    assert sorted(dag.orders[order] for order in dag.edge_order) == ["6@1,6@0", "[0,1,2]", "any"]


def test_kernel_reads_the_rows_from_memory_and_not_the_table() -> None:
    text = "g (int64[2,3] i) => (float[2,3,6] y) { y = Gather(t, i) }"
    dag = extract(lower_to_maps(lower_to_canonical(program_from_text(text, t=VALUES), TABLE), TABLE).sdfg)
    (kernel,) = dag.kernels

    assert kernel.inputs == ("i",)
    assert kernel.memory_bytes == 36 * 4
    assert kernel.m * kernel.n == 36

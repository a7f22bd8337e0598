import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.lowering import Choice, lower_to_maps, registered_expansions
from dfcompile.lowering.operators import MatMul
from dfcompile.testing.expansions import canonical_program
from tests.examples import examples
from tests.interpreter import interpret

TABLE = registered_expansions()
NAMES = ["mv", "op", "lmv", "ip", "columns", "rows"]
extents = st.integers(1, 5)


@pytest.mark.parametrize("name", NAMES)
@given(batch=st.lists(extents, max_size=2), n=extents, k=extents, m=extents, shared=st.booleans(),
       transposed=st.tuples(st.booleans(), st.booleans()))  # fmt: skip
@examples(25)
def test_product_is_numpys(
    name: str, batch: list[int], n: int, k: int, m: int, shared: bool, transposed: tuple[bool, bool]
) -> None:
    a_shape = (*batch, *((k, n) if transposed[0] else (n, k)))
    b_shape = (*([] if shared else batch), *((m, k) if transposed[1] else (k, m)))
    program = canonical_program(MatMul(*transposed), [a_shape, b_shape], (*batch, n, m), dtype="float64")
    maps = lower_to_maps(program, TABLE, [Choice("MatMul", name)])
    generator = np.random.default_rng(n * m * k)
    a, b = generator.uniform(-1, 1, a_shape), generator.uniform(-1, 1, b_shape)
    expected = (np.swapaxes(a, -1, -2) if transposed[0] else a) @ (np.swapaxes(b, -1, -2) if transposed[1] else b)

    found = interpret(maps, {"x0": a, "x1": b})["y"].astype(np.float64)

    assert np.max(np.abs(found - expected)) < 1e-12
    extract(maps.sdfg)  # verifies that every task is canonical


@pytest.mark.parametrize(
    ("name", "tasks", "io"),
    # n, k, m = 3, 4, 5; every task's accesses to memory, then C once.
    [
        ("mv", 5 + 2, 12 + 5 * 12 + 15),  # A once for the broadcast, a column of B per row
        ("op", 4 + 1, 4 * (15 + 15) + 15),  # both operands once per element of the outer product
        ("lmv", 3 + 2, 20 + 3 * 20 + 15),  # B once for the broadcast, a row of A per column
        ("ip", 15 + 1, 15 * (4 + 4) + 15),
        ("columns", 5, 5 * (12 + 12) + 15),  # what mv reads, and nothing is copied
        ("rows", 3, 3 * (20 + 20) + 15),
    ],
)
def test_tasks_and_memory_traffic_follow_the_closed_forms(name: str, tasks: int, io: int) -> None:
    program = canonical_program(MatMul(), [(3, 4), (4, 5)], (3, 5))
    dag = extract(lower_to_maps(program, TABLE, [Choice("MatMul", name)]).sdfg)
    touches_memory = dag.is_buffer[dag.edge_source] | dag.is_buffer[dag.edge_target]

    assert dag.tasks_count == tasks
    assert int(dag.edge_volume[touches_memory].sum()) == io


@pytest.mark.parametrize(("name", "order"), [("mv", "[0,1]"), ("ip", "[0,1]"), ("lmv", "[1,0]"), ("op", "[1,0]")])
def test_product_leaves_by_rows_or_by_columns(name: str, order: str) -> None:
    program = canonical_program(MatMul(), [(3, 4), (4, 5)], (3, 5))
    dag = extract(lower_to_maps(program, TABLE, [Choice("MatMul", name)]).sdfg)
    (last,) = dag.in_edges[dag.in_start[dag.nodes_count - 1] :].tolist()

    assert dag.orders[dag.edge_order[last]] == order


def test_kernel_is_the_product_with_its_dimensions() -> None:
    program = canonical_program(MatMul(), [(2, 3, 4), (2, 4, 5)], (2, 3, 5))
    (kernel,) = extract(lower_to_maps(program, TABLE).sdfg).kernels

    assert (kernel.op, kernel.outer, kernel.m, kernel.k, kernel.n) == ("MatMul", 2, 3, 4, 5)
    assert kernel.variant == "gemm_input1_input2"

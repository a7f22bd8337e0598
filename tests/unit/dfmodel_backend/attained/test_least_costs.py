"""Least DRAM traffic of sets of kernels, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import DagBuilder, KernelTensor, TensorRole
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import least_costs
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from tests.examples import examples


def test_what_is_made_is_written_if_a_reader_runs_elsewhere() -> None:
    builder = DagBuilder("two")
    first, second = (builder.add_task(builder.add_scope(name)) for name in ("first", "second"))
    array = builder.add_memory(builder.add_scope("array"))
    builder.add_edge(first, array, 8)
    builder.add_edge(array, second, 8)
    system, options = load_system(None).with_cores(1), ScheduleOptions(1)
    costs = LeastCosts(TaskModel(builder.finish(), system, options, options, Overlap.PERFECT_OVERLAP))
    none, one, both = range(3)
    members = np.array([[False, False], [True, False], [True, True]])

    found_ns = costs.memory_ns(members, np.array([none, none, one]), np.array([both, one, both]))

    assert (found_ns * system.dram_gb_per_s).tolist() == [0, 32, 32]  # bytes: nothing, written, read


def test_bytes_of_several_edges_add_up_and_blocks_of_pairs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = DagBuilder("many")
    makers = [builder.add_task(builder.add_scope(name, origin=name)) for name in ("left", "right")]
    reader = builder.add_task(builder.add_scope("reader"))
    for maker in makers:
        for number in range(2):
            array = builder.add_memory(builder.add_scope(f"array{maker}{number}"))
            builder.add_edge(maker, array, 8)
            builder.add_edge(array, reader, 8)
    system, options = load_system(None).with_cores(1), ScheduleOptions(1)
    model = TaskModel(builder.finish(), system, options, options, Overlap.PERFECT_OVERLAP)
    assert model.units.count == 3
    members = np.array([[False, False, False], [True, False, False], [True, True, False], [True, True, True]])
    before, after = np.array([0, 0, 1, 2, 0]), np.array([1, 2, 2, 3, 3])

    whole = LeastCosts(model).memory_ns(members, before, after)
    monkeypatch.setattr(least_costs, "PAIRS", 2)
    in_blocks = LeastCosts(model).memory_ns(members, before, after)

    assert (whole * system.dram_gb_per_s).tolist() == [64, 128, 64, 128, 0]
    assert in_blocks.tolist() == whole.tolist()


@examples(30)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=3), st.booleans(), st.booleans()
)
def test_no_configuration_reads_less(reads: list[tuple[int, int]], ordered: bool, roomy: bool) -> None:
    """Tasks read parts of an array, some elements again: each element is fetched once where there is room for it."""
    builder = DagBuilder("parts")
    array, results = (builder.add_memory(builder.add_scope(name)) for name in ("array", "results"))
    builder.add_tensor(KernelTensor("array", 12, 4, TensorRole.PARAMETER))
    for number, (distinct, again) in enumerate(reads):
        task = builder.add_task(builder.add_scope(f"reader{number}"))
        order = "[0]" if ordered else "any"
        builder.add_edge(array, task, distinct + again, distinct=distinct, order=order)
        builder.add_edge(task, results, 1)
    system, options = load_system(None).with_cores(2), ScheduleOptions(2)
    system = replace(system, accelerator=replace(system.accelerator, sram=Amount(1000.0 if roomy else 8.0)))
    model = TaskModel(builder.finish(), system, options, options, Overlap.PERFECT_OVERLAP)
    found = model.configuration((1 << model.units.count) - 1)
    assert found is not None
    members = np.array([[False], [True]]).repeat(model.units.count, axis=1)

    (least_ns,) = LeastCosts(model).memory_ns(members, np.array([0]), np.array([1]))

    assert least_ns * system.dram_gb_per_s <= found.dram_bytes

"""Least DRAM traffic of sets of kernels, by hand."""

import numpy as np
import pytest

from dfcompile.canonical_dag import DagBuilder
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import least_costs
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.scheduler import ScheduleOptions


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


def test_bytes_of_several_edges_add_up_and_blocks_of_stores_too(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(least_costs, "CELLS", 1)
    in_blocks = LeastCosts(model).memory_ns(members, before, after)

    assert (whole * system.dram_gb_per_s).tolist() == [64, 128, 64, 128, 0]
    assert in_blocks.tolist() == whole.tolist()

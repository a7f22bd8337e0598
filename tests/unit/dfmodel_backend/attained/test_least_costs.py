"""Least DRAM traffic of sets of kernels, by hand."""

import numpy as np

from dfcompile.canonical_dag import DagBuilder
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
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

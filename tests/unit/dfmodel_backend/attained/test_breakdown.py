"""Where the time of a mapping goes, by hand."""

import pytest

from dfcompile.canonical_dag import DagBuilder
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.scheduler import ScheduleOptions


@pytest.mark.parametrize("pes", [1, 2])
def test_a_block_opens_when_the_one_before_has_ended(pes: int) -> None:
    """Two tasks of eight cycles, one after the other on one element; of two elements one is idle all the time."""
    builder = DagBuilder("two")
    first, second = (builder.add_task(builder.add_scope(name)) for name in ("first", "second"))
    array = builder.add_memory(builder.add_scope("array"))
    builder.add_edge(first, array, 8)
    builder.add_edge(array, second, 8)
    system, options = load_system(None).with_cores(pes), ScheduleOptions(pes)

    found = map_tasks(TaskModel(builder.finish(), system, options, options, Overlap.PERFECT_OVERLAP))
    parts, ghz = found.parts, system.accelerator.frequency_ghz

    assert found.schedule.makespan_cycles == 16
    assert parts.work_ns == 16 / pes / ghz
    assert parts.throttled_ns == parts.memory_ns == 0
    lost = (parts.idle_elements_ns, parts.waiting_ns, parts.whole_blocks_ns)
    assert sum(lost) == pytest.approx((16 - 16 / pes) / ghz)
    assert min(lost) >= 0
    if pes == 1:
        assert lost == (0, 0, 0)

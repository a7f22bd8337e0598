"""The checker of mappings of lowerings finds what is not as it says."""

from collections.abc import Callable

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend import Overlap, TaskMapping, TaskModel, load_system
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE, NOT_HELD, Place
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions

SYSTEM = load_system(None).with_cores(2)


def graph() -> CanonicalDag:
    """Return a chain of three tasks with an array between the last two, which two more tasks read."""
    builder = DagBuilder("graph")
    first, second = (builder.add_task(builder.add_scope(name)) for name in ("first", "second"))
    array = builder.add_memory(builder.add_scope("array"))
    result = builder.add_memory(builder.add_scope("result"))
    builder.add_edge(first, second, 12)
    builder.add_edge(second, array, 6)
    for task in builder.add_tasks(builder.add_scope("reader"), 3):
        builder.add_edge(array, task, 6)
        builder.add_edge(task, result, 2)
    return builder.finish()


def mapped() -> TaskMapping:
    options = ScheduleOptions(2)
    return map_tasks(TaskModel(graph(), SYSTEM, options, options, Overlap.PERFECT_OVERLAP))


def with_first(mapping: TaskMapping, **changes: object) -> TaskMapping:
    first, *others = mapping.configurations
    return replace(mapping, configurations=(replace(first, **changes), *others))  # type: ignore[arg-type]


def with_store(mapping: TaskMapping, **changes: object) -> TaskMapping:
    first, *others = mapping.configurations[0].stores
    return with_first(mapping, stores=(replace(first, **changes), *others))  # type: ignore[arg-type]


def with_residency(mapping: TaskMapping, **changes: object) -> TaskMapping:
    return with_first(mapping, residency=replace(mapping.configurations[0].residency, **changes))  # type: ignore[arg-type]


def whole_at_first(mapping: TaskMapping) -> Int64:
    """Return fetches of which the first edge of the array alone says that it is held whole."""
    residency = mapping.configurations[0].residency
    at_array = np.isin(residency.edge, np.flatnonzero(graph().edge_source == 2))
    return np.where(at_array, np.where(np.cumsum(at_array) == 1, HELD_WHOLE, NOT_HELD), residency.fetch)


def with_kernel(mapping: TaskMapping, **changes: object) -> TaskMapping:
    first, *others = mapping.kernels
    return replace(mapping, kernels=(replace(first, **changes), *others))  # type: ignore[arg-type]


def test_what_was_found_is_accepted() -> None:
    check_task_mapping(graph(), SYSTEM, Overlap.PERFECT_OVERLAP, mapped())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: replace(found, time_s=found.time_s / 2), "^time: found"),
        (lambda found: replace(found, dram_bytes=found.dram_bytes + 1), "^bytes of DRAM: found"),
        (lambda found: replace(found, sram_bytes=0), "^bytes of SRAM: found 0"),
        (lambda found: replace(found, energy_j=0.0), "^energy: found 0.0"),
        (lambda found: replace(found, cost_usd=1.0), "^cost: found 1.0"),
        (lambda found: replace(found, power_w=1.0), "^power: found 1.0"),
        (lambda found: replace(found, bound_time_s=2 * found.time_s), "^bound: found"),
        (lambda found: replace(found, parts=replace(found.parts, work_ns=0.0)), "^parts of the time: found"),
        (lambda found: replace(found, configurations=found.configurations[:0]), "in no configuration"),
        (lambda found: with_first(found, compute_ns=1.0), "^configuration 0: compute: found 1.0"),
        (lambda found: with_first(found, memory_ns=0.0), "^configuration 0: memory: found 0.0"),
        (lambda found: with_first(found, time_ns=1.0), "^configuration 0: time: found 1.0"),
        (lambda found: with_residency(found, sram_bytes=1), "^configuration 0: bytes of SRAM: found 1 "),
        (lambda found: with_residency(found, fifo_bytes=1), "^configuration 0: bytes of FIFOs: found 1 "),
        (
            lambda found: with_residency(
                found,
                edge=found.configurations[0].residency.edge[:0],
                fetch=found.configurations[0].residency.fetch[:0],
            ),
            "bytes of DRAM: found",
        ),
        (lambda found: with_residency(found, fetch=whole_at_first(found)), "held whole and not whole"),
        (lambda found: with_first(found, stores=()), "^configuration 0: nothing is said of"),
        (lambda found: with_store(found, written=1), "bytes written, read, fetched; leaves: found"),
        (lambda found: with_store(found, dram_write_bytes=77), "bytes of DRAM: found"),
        (lambda found: with_store(found, name="other"), "nothing is said of"),
        (lambda found: with_store(found, place=Place.PARTS), "place: found parts"),
        (lambda found: replace(found, kernels=found.kernels[1:]), "^names of kernels: found"),
        (lambda found: with_kernel(found, configuration=7), "^kernel 'first': configurations: found .7. against .0.$"),
        (lambda found: with_kernel(found, flop=5), "^kernel 'first': operations: found 5 against 0"),
        (lambda found: with_kernel(found, chip_bytes=1), "^kernel 'first': bytes on the chip: found 1 against"),
        (lambda found: with_kernel(found, compute_ns=0.5), "^kernel 'first': compute: found 0.5"),
        (lambda found: with_kernel(found, memory_ns=0.5), "^kernel 'first': memory: found 0.5"),
        (lambda found: with_kernel(found, time_ns=0.5), "^kernel 'first': time: found 0.5"),
        (lambda found: with_kernel(found, received_bytes=1), "1.* bytes from other chips in"),
        (lambda found: with_kernel(found, network_ns=1.0, time_ns=12.0), "^kernel .first.: network: found 1.0 against"),
        (
            lambda found: replace(found, roofs=replace(found.roofs, dram_bytes_per_s=1.0)),
            "bytes of DRAM in .* at most 1.0",
        ),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[TaskMapping], TaskMapping], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_task_mapping(graph(), SYSTEM, Overlap.PERFECT_OVERLAP, change(mapped()))


def test_schedule_that_is_too_short_is_found() -> None:
    found = mapped()
    schedule = replace(
        found.schedule,
        last_out=np.maximum(found.schedule.last_out - 1, found.schedule.first_out),
        makespan_cycles=found.schedule.makespan_cycles - 1,
    )

    with pytest.raises(VerificationError):
        check_task_mapping(graph(), SYSTEM, Overlap.PERFECT_OVERLAP, replace(found, schedule=schedule))


def test_longer_schedule_than_its_replay_is_found() -> None:
    found = mapped()
    later = {name: getattr(found.schedule, name) + 5 for name in ("start", "first_out", "last_out")}
    schedule = replace(found.schedule, **later, makespan_cycles=found.schedule.makespan_cycles + 5)

    with pytest.raises(VerificationError, match="cycles of the schedule: found"):
        check_task_mapping(graph(), SYSTEM, Overlap.PERFECT_OVERLAP, replace(found, schedule=schedule))

"""Where the time of a mapping goes: parts that add up to it."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.distinct import numbered
from dfcompile.scheduler import Schedule


class TimeParts(Struct, frozen=True):
    """Parts of the time of a mapping, in ns; together they are all of it.

    On P processing elements T cycles are P T cycles of elements. Each of them is of one kind; divided by P they add up
    to T.

    Attributes:
        work_ns: tasks at work, one element per cycle: the work of all tasks / P.
        idle_elements_ns: elements without a task: fewer tasks in a spatial block than there are elements.
        waiting_ns: tasks that have an element and wait for memory that others of their block complete, or for the first
            elements of their streams.
        throttled_ns: tasks that have started and wait for others that stream to them or from them.
        whole_blocks_ns: tasks that have ended while others of their block run.
        memory_ns: DRAM traffic beyond the schedule.
        network_ns: exchanges between chips beyond both.
    """

    work_ns: float
    idle_elements_ns: float
    waiting_ns: float
    throttled_ns: float
    whole_blocks_ns: float
    memory_ns: float
    network_ns: float


class Phase(Struct, frozen=True):
    """A spatial block of a mapping's schedule; without barriers all blocks of a configuration.

    Attributes:
        configuration: number of the configuration.
        start_cycle: of the schedule.
        end_cycle: of the schedule.
        tasks: at work in it.
    """

    configuration: int
    start_cycle: int
    end_cycle: int
    tasks: int


def phases_of(configurations: Sequence[TaskConfiguration]) -> tuple[Phase, ...]:
    """Return the phases of configurations that follow one another."""
    found = []
    now = 0
    for number, configuration in enumerate(configurations):
        schedule, task = configuration.schedule, configuration.part.dag.is_computational
        ends, counts = np.array([schedule.makespan_cycles]), np.array([np.count_nonzero(task)])
        if schedule.barrier:
            ends, block = _block_ends(schedule, task)
            ends, counts = np.maximum.accumulate(ends), np.bincount(block)
        begin = now
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
            found.append(Phase(number, begin, now + end, count))
            begin = now + end
        now += schedule.makespan_cycles
    return tuple(found)


def _block_ends(schedule: Schedule, task: Bool) -> tuple[Int64, Int64]:
    """Return when the last task of each block with tasks ends, and the number of the block of each task."""
    used, number = numbered(schedule.block[task])
    ends = np.zeros(len(used), dtype=np.int64)
    np.maximum.at(ends, number, schedule.last_out[task])
    return ends, number


def time_parts(
    dag: CanonicalDag, schedule: Schedule, configurations: Sequence[TaskConfiguration], ghz: float, overlap: Overlap
) -> TimeParts:
    """Return the parts of the time of a mapping.

    Args:
        dag: the lowering in words of the machine.
        schedule: of all configurations.
        configurations: in order of execution.
        ghz: frequency of the processing elements.
        overlap: of compute, memory and network.
    """
    task = dag.is_computational
    work = int(dag.work.sum())
    lasting = int((schedule.last_out[task] - schedule.start[task]).sum())
    waiting = whole_blocks = 0
    if schedule.barrier:
        ends, number = _block_ends(schedule, task)
        opened = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        waiting = int((schedule.start[task] - opened[number]).sum())
        whole_blocks = int((ends[number] - schedule.last_out[task]).sum())
    occupied = waiting + lasting + whole_blocks
    idle = schedule.pes * schedule.makespan_cycles - occupied

    def ns(cycles: int) -> float:
        return float(Fraction(cycles, schedule.pes)) / ghz

    on_one_chip_ns = sum(overlap.time_ns(found.compute_ns, found.memory_ns, 0.0) for found in configurations)
    compute_ns = sum(found.compute_ns for found in configurations)
    return TimeParts(
        work_ns=ns(work),
        idle_elements_ns=ns(idle),
        waiting_ns=ns(waiting),
        throttled_ns=ns(lasting - work),
        whole_blocks_ns=ns(whole_blocks),
        memory_ns=on_one_chip_ns - compute_ns,
        network_ns=sum(found.time_ns for found in configurations) - on_one_chip_ns,
    )

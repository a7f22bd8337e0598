"""The scheduling of a canonical DAG, with all that is checked and found out about a schedule."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dfcompile import scheduler
from dfcompile.canonical_dag import CanonicalDag, critical_path, read_dag, streaming_depth
from dfcompile.errors import UserError
from dfcompile.host.inputs import read_text
from dfcompile.options import Fifos, Timing
from dfcompile.scheduler.fifo.search import minimal_fifo_sizes
from dfcompile.scheduler.simulation import Replay, Simulation, simulate

ShowStage: TypeAlias = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class SchedulingOptions:
    """What the user chose about schedules.

    Attributes:
        partition: name of the partitioner.
        timing: how times are found, ``steady`` or ``exact``.
        barrier: whether blocks wait for one another; ``None``: as the partitioner has it.
        fifos: ``rule``: the published sizes; ``minimal``: the smallest that keep the makespan; a number: all of that
            size, whatever it costs.
        simulated: whether to replay the schedule.
    """

    partition: str
    timing: Timing = "steady"
    barrier: bool | None = None
    fifos: Fifos = "rule"
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Depths:
    """What a canonical DAG takes on one and on any number of processing elements, in cycles.

    Attributes:
        total_work_cycles: T1, all tasks one after another.
        critical_path_cycles: T_inf, without streaming.
        streaming_depth_cycles: T_s_inf, with streaming.
    """

    total_work_cycles: int
    critical_path_cycles: int
    streaming_depth_cycles: int


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A canonical DAG on a number of processing elements: a schedule that the checker accepted, and its figures."""

    schedule: scheduler.Schedule
    figures: scheduler.ScheduleFigures
    simulation: Simulation | None


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledFile:
    """A canonical DAG from a file and its schedules: per number of processing elements, one per partitioner."""

    dag: CanonicalDag
    depths: Depths
    schedules: tuple[Scheduled, ...]


def read_dag_file(path: Path) -> CanonicalDag:
    """Read a canonical DAG, as text or JSON.

    Raises:
        UserError: the file cannot be read, or it holds no canonical DAG; the message names the line or the record.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: {reason}") from error
    try:
        return read_dag(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def check_partition(name: str) -> None:
    """Check that there is a partitioner of a name.

    Raises:
        UserError: there is none.
    """
    scheduler.registered_partitioners().find(name, "--partition")


def schedule_dag(
    dag: CanonicalDag, pes: Sequence[int], choices: Sequence[SchedulingOptions], show: ShowStage
) -> ScheduledFile:
    """Schedule a canonical DAG on each number of processing elements in each of several ways."""
    with show("finding its depths"):
        depths = depths_of(dag)
    schedules = []
    for count in pes:
        with show(f"scheduling without streaming on {count} processing elements"):
            baseline = non_streaming(dag, count)
        for options in choices:
            with show(f"scheduling on {count} processing elements with {options.partition}"):
                schedules.append(scheduled(dag, count, options, baseline))
    return ScheduledFile(dag, depths, tuple(schedules))


def depths_of(dag: CanonicalDag) -> Depths:
    """Return the depths of a canonical DAG."""
    return Depths(int(dag.work.sum()), critical_path(dag), streaming_depth(dag))


def non_streaming(dag: CanonicalDag, pes: int) -> scheduler.NonStreamingSchedule:
    """Return the baseline on a number of processing elements, accepted by its checker."""
    baseline = scheduler.schedule_non_streaming(dag, pes)
    scheduler.check_non_streaming(dag, baseline)
    return baseline


def scheduled(
    dag: CanonicalDag, pes: int, options: SchedulingOptions, baseline: scheduler.NonStreamingSchedule
) -> Scheduled:
    """Schedule a canonical DAG on a number of processing elements, check the schedule, and replay it if asked for."""
    chosen = scheduler.ScheduleOptions(
        pes, options.partition, barrier=options.barrier, timing=scheduler.Timing(options.timing)
    )
    schedule = scheduler.schedule(dag, chosen)
    scheduler.check(dag, schedule)
    schedule = replace(schedule, fifo_capacity=_fifo_capacity(dag, schedule, options.fifos))
    simulation = simulate(dag, replay_of(schedule)) if options.simulated else None
    return Scheduled(schedule, scheduler.figures(dag, schedule, baseline), simulation)


def replay_of(schedule: scheduler.Schedule) -> Replay:
    """Return what of a schedule the simulator replays."""
    return Replay(
        pe=schedule.pe,
        order=schedule.start,
        streamed=schedule.streamed,
        fifo_capacity=schedule.fifo_capacity,
        block=schedule.block,
        barrier=schedule.barrier,
    )


def _fifo_capacity(
    dag: CanonicalDag, schedule: scheduler.Schedule, fifos: Fifos
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if fifos == "rule":
        capacity = schedule.fifo_capacity
    elif fifos == "minimal":
        capacity = minimal_fifo_sizes(dag, replay_of(schedule))
    else:
        capacity = np.where(schedule.streamed, fifos, 0)
    return capacity.astype(np.int64)

"""Schedules with the times of their replay: what the tasks take with the FIFOs that the schedule has."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import Replay, Simulation, simulate
from dfcompile.scheduler.simulation.unstreamed import settled


def replayed(dag: CanonicalDag, schedule: Schedule) -> Schedule:
    """Return a schedule with the times that a replay of it takes.

    Raises:
        VerificationError: the replay ends in a deadlock.
        ReplayTooLargeError: the replay is too large.
    """
    found = settled_replay(dag, schedule) or simulate(dag, replay_of(schedule), details=False)
    if found.deadlock:
        link = found.deadlock[0].text(dag)
        raise VerificationError(f"schedule of {dag.name!r} on {schedule.pes} processing elements: deadlock, {link}")
    return with_times_of(dag, schedule, found)


def settled_replay(dag: CanonicalDag, schedule: Schedule) -> Simulation | None:
    """Return the replay of a schedule in which nothing streams if it takes the times that were planned, else none."""
    return settled(dag, replay_of(schedule), schedule.start, schedule.last_out)


def with_times_of(dag: CanonicalDag, schedule: Schedule, replay: Simulation) -> Schedule:
    """Return a schedule with the times of a replay that ended."""
    start = np.where(dag.is_computational, replay.start, np.minimum(replay.start, replay.end))
    first_out = first_outputs(dag, schedule.streamed, start, replay.end)
    for column in (start, first_out):
        column.setflags(write=False)
    return replace(
        schedule,
        timing=Timing.EXACT,
        start=start,
        first_out=first_out,
        last_out=replay.end,
        makespan_cycles=replay.makespan_cycles,
    )


def first_outputs(dag: CanonicalDag, streamed: Bool, start: Int64, end: Int64) -> Int64:
    """Return when each node hands on its first element, shape [nodes].

    That is the latest time that its readers and its own last element allow: nothing else depends on it.
    """
    first_out = np.where(dag.is_computational, end - np.maximum(dag.volume_out - 1, 0), end)
    edges = np.flatnonzero(streamed)
    np.minimum.at(first_out, dag.edge_source[edges], start[dag.edge_target[edges]])
    return first_out


def replay_of(schedule: Schedule) -> Replay:
    """Return what of a schedule the simulator replays."""
    return Replay(
        pe=schedule.pe,
        order=schedule.start,
        streamed=schedule.streamed,
        fifo_capacity=schedule.fifo_capacity,
        block=schedule.block,
        barrier=schedule.barrier,
    )

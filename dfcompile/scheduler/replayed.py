"""Schedules with the times of their replay: what the tasks take with the FIFOs that the schedule has."""

from dataclasses import replace

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.scheduler.checker import check
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import Replay, simulate


def replayed(dag: CanonicalDag, schedule: Schedule) -> Schedule:
    """Return a schedule with the times that a replay of it takes, accepted by the checker.

    When a task hands on its first element is the latest time that its readers and its own last element allow: nothing
    else depends on it.

    Raises:
        VerificationError: the replay ends in a deadlock, or the checker rejects what it took.
        UserError: the replay is too large.
    """
    found = simulate(dag, replay_of(schedule), details=False)
    if found.deadlock:
        link = found.deadlock[0].text(dag)
        raise VerificationError(f"schedule of {dag.name!r} on {schedule.pes} processing elements: deadlock, {link}")
    first_out = np.where(dag.is_computational, found.end - np.maximum(dag.volume_out - 1, 0), found.end)
    edges = np.flatnonzero(schedule.streamed)
    np.minimum.at(first_out, dag.edge_source[edges], found.start[dag.edge_target[edges]])
    start = np.where(dag.is_computational, found.start, np.minimum(found.start, found.end))
    for column in (start, first_out):
        column.setflags(write=False)
    timed = replace(
        schedule,
        timing=Timing.EXACT,
        start=start,
        first_out=first_out,
        last_out=found.end,
        makespan_cycles=found.makespan_cycles,
    )
    check(dag, timed)
    return timed


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

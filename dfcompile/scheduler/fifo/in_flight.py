"""FIFO capacities by elements in flight: those that throttle nothing."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from dfcompile.scheduler.simulation import Replay, Simulation, simulate
from dfcompile.scheduler.simulation.apart import Apart, replay_apart
from dfcompile.scheduler.simulation.reversal import reversed_dag, reversed_replay

_LARGE = 2**12  # nodes: a replay takes some tenths of a second
_HARDLY_LESS = 100  # one element in so many


def in_flight_sizes(dag: CanonicalDag, replay: Replay) -> Int64:
    """Return the capacities of `in_flight`."""
    return in_flight(dag, replay)[0]


def in_flight(dag: CanonicalDag, replay: Replay, free: Simulation | None = None) -> tuple[Int64, Simulation]:
    """Return capacities with which a replay takes no longer than with FIFOs that are never full, and that replay.

    First all accesses are as early as FIFOs that are never full allow. Then all are put off as long as the end of the
    schedule allows: that is a replay of the reversed graph. The elements that are in flight then, written and not yet
    read, are capacities with which this late schedule is possible; so the earliest schedule with them ends in time as
    well, without a deadlock. Of these capacities what the earliest schedule uses is kept. Where in a large graph they
    are hardly less than what is in flight if all accesses are early, that is taken: it needs no further replay. Bursts
    count as they are: no mean interval is taken.

    Args:
        dag: the graph.
        replay: the schedule, whatever its capacities.
        free: its replay with FIFOs that are never full, if there is one already.

    Raises:
        InfeasibleError: the schedule cannot end whatever the capacities.
        ReplayTooLargeError: the replay is too large.
    """
    if free is None:
        free = simulate(dag, replace(replay, fifo_capacity=_whole(dag)))
    if free.deadlock:
        links = ", ".join(wait.text(dag) for wait in free.deadlock)
        raise InfeasibleError(f"schedule of {dag.name!r}: a deadlock with fifos of any size ({links})")
    early = replace(replay, fifo_capacity=_room(replay, free.peak))
    late = simulate(reversed_dag(dag), reversed_replay(early))
    kept = replace(replay, fifo_capacity=_room(replay, late.peak[::-1]))
    least, most = int(kept.fifo_capacity.sum()), int(early.fifo_capacity.sum())
    if dag.nodes_count > _LARGE and (most - least) * _HARDLY_LESS < most:
        return early.fifo_capacity, free
    found = simulate(dag, kept)
    # With room for what it used, and no more, each access is in the same cycle.
    return _room(replay, found.peak), found


def in_flight_apart(dag: CanonicalDag, replay: Replay, group: Int32, latest: Int64) -> tuple[Int64, Apart]:
    """Return such capacities for groups of nodes, each by itself, and the times of the groups with them.

    Here a task may also end in a given cycle of its group, if that is later than it could with FIFOs never full.

    Args:
        dag: the graph.
        replay: what streams; where tasks run does not matter.
        group: of each node; what streams together is of one group, shape [nodes].
        latest: cycle of its group until which each node may run, shape [nodes].
    """
    free = replay_apart(dag, replace(replay, fifo_capacity=_whole(dag)), group)
    lasting = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(lasting, group, free.end)
    whole = lasting[group]
    release = whole - np.clip(latest, free.end, whole)
    early = replace(replay, fifo_capacity=_room(replay, free.peak))
    late = replay_apart(reversed_dag(dag), reversed_replay(early), group, release)
    kept = replace(replay, fifo_capacity=_room(replay, late.peak[::-1]))
    sized = replay_apart(dag, kept, group)
    return _room(replay, sized.peak), sized


def _whole(dag: CanonicalDag) -> Int64:
    return np.maximum(dag.edge_volume, 1)


def _room(replay: Replay, peak: Int64) -> Int64:
    room = np.where(replay.streamed, np.maximum(peak, 1), 0)
    room.setflags(write=False)
    return room

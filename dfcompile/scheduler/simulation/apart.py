"""Replays of groups of tasks, each by itself, as if all that it reads of others were there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler.simulation.plan import Plan, check_sizes, is_too_large, plan_replay
from dfcompile.scheduler.simulation.replay import NO_NODE, Replay
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.twins import without_twins
from dfcompile.scheduler.simulation.unit_replay import replay_unit

NODE_ACCESSES = 500  # a node costs about as much as so many accesses
_ROUNDS = 8  # before a unit repeats
_FEWEST_SAMPLES = 16
_TOO_MANY = 2**62  # of a unit that no replay takes
_FIRST_ACCESSES = 4096  # of an edge, before a unit is looked at for repetitions


class Apart(Struct, frozen=True, eq=False):
    """Times of groups of nodes that each begin in cycle 0.

    Attributes:
        start: of each node, shape [nodes].
        end: cycle in which each node has ended, shape [nodes].
        peak: capacity of each FIFO that changes no time, 0 for other edges, shape [edges].
    """

    start: Int64
    end: Int64
    peak: Int64


def replay_apart(dag: CanonicalDag, replay: Replay, group: Int32, release: Int64 | None = None) -> Apart:
    """Replay each group by itself; where tasks run does not matter.

    Args:
        dag: the graph.
        replay: what streams, and through which FIFOs.
        group: of each node; what streams together is of one group, shape [nodes].
        release: cycle of its group from which on each node may run; 0 without, shape [nodes].

    Raises:
        VerificationError: the replay does not fit the graph, or a group ends in a deadlock.
        ReplayTooLargeError: a group is too large.
    """
    plan = plan_replay(dag, _each_on_its_own(dag, replay))
    check_sizes(dag, plan)
    groups, begin = group.tolist(), [0] * dag.nodes_count if release is None else release.tolist()
    start, end = [0] * dag.nodes_count, [0] * dag.nodes_count
    peak = np.zeros(dag.edges_count, dtype=np.int64)

    def released(node: int) -> int:
        return max([begin[node], *(end[other] for other in plan.waits[node] if groups[other] == groups[node])])

    for part in plan.sequence:
        if isinstance(part, StreamingUnit):
            times = replay_unit(part, tuple(released(node) for node in part.nodes), details=True)
            if times.stuck:
                raise VerificationError(f"group of {dag.node_name(part.nodes[0])!r}: a deadlock by itself")
            for node, first, last in zip(part.nodes, times.start, times.end, strict=True):
                start[node], end[node] = first, last
            peak[list(part.edges)] = times.peak
        else:
            for node in part:
                start[node] = released(node)
                end[node] = start[node] + plan.work[node]
    return Apart(np.array(start, dtype=np.int64), np.array(end, dtype=np.int64), peak)


def replay_sample(dag: CanonicalDag, replay: Replay, most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield nodes that stream together and the cycles that they take by themselves; none where they deadlock.

    Args:
        dag: the graph.
        replay: what streams, and through which FIFOs.
        most: accesses that all may cost together: of what costs too much nothing is replayed, of the others as much
            as possible, evenly spread.
    """
    plan = plan_replay(dag, _each_on_its_own(dag, replay))
    for unit in _sample(_units(plan), most):
        times = replay_unit(unit, tuple(0 for _ in unit.nodes), details=False)
        if not times.stuck:
            yield unit.nodes, max(times.end)


def accesses_of(dag: CanonicalDag, plan: Plan) -> int:
    """Return about how many accesses a replay has to look at, nodes included; an estimate."""
    nodes = dag.nodes_count * NODE_ACCESSES
    return nodes + sum(_accesses(unit) for unit in _units(plan))


def _units(plan: Plan) -> list[StreamingUnit]:
    return [part for part in plan.sequence if isinstance(part, StreamingUnit)]


def _accesses(unit: StreamingUnit) -> int:
    if is_too_large(unit):
        return _TOO_MANY
    looked_at = without_twins(unit, (0,) * len(unit.nodes)).unit
    volumes = [looked_at.volume(edge) for edge in range(len(looked_at.edges))]
    return sum(min(volume, max(_ROUNDS * volume // unit.rounds, _FIRST_ACCESSES)) for volume in volumes)


def _sample(units: list[StreamingUnit], most: int) -> list[StreamingUnit]:
    """Return units that cost no more than a part of what is allowed each, every so many of them."""
    small = [unit for unit in units if _accesses(unit) * _FEWEST_SAMPLES <= most]
    total = sum(_accesses(unit) for unit in small)
    return small[:: max(-(-total // most), 1)]


def _each_on_its_own(dag: CanonicalDag, replay: Replay) -> Replay:
    own = np.where(dag.is_computational, np.arange(dag.nodes_count), NO_NODE).astype(np.int32)
    return replace(replay, pe=own, barrier=False)

"""Replays of groups of tasks, each by itself, as if all that it reads of others were there."""

from collections.abc import Iterator

import numpy as np

from dfcompile.canonical_dag.dag import CanonicalDag, Int32, Int64
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler.simulation.plan import Plan, is_too_large, plan_replay
from dfcompile.scheduler.simulation.replay import NO_NODE, Replay, Simulation
from dfcompile.scheduler.simulation.simulator import simulate_plan
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.unit_replay import replay_unit, without_twins

NODE_ACCESSES = 500  # a node costs about as much as so many accesses
_ROUNDS = 8  # before a unit repeats
_FEWEST_SAMPLES = 16
_TOO_MANY = 2**62  # of a unit that no replay takes
_FIRST_ACCESSES = 4096  # of an edge, before a unit is looked at for repetitions


def replay_apart(dag: CanonicalDag, replay: Replay, group: Int32, release: Int64 | None = None) -> Simulation:
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
    plan, groups = plan_replay(dag, _each_on_its_own(dag, replay)), group.tolist()
    inside = (
        tuple(other for other in others if groups[other] == groups[node]) for node, others in enumerate(plan.waits)
    )
    found = simulate_plan(dag, replace(plan, waits=tuple(inside)), earliest=release)
    if found.deadlock:
        raise VerificationError(f"group of {dag.node_name(found.deadlock[0].node)!r}: a deadlock by itself")
    return found


def replay_sample(dag: CanonicalDag, replay: Replay, most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield nodes that stream together and the cycles that they take by themselves; none where they deadlock.

    Args:
        dag: the graph.
        replay: what streams, and through which FIFOs.
        most: accesses that all may cost together: of what costs too much nothing is replayed, of the others as much
            as possible, evenly spread.
    """
    plan = plan_replay(dag, _each_on_its_own(dag, replay))
    for unit in _sample(plan.units, most):
        times = replay_unit(unit, tuple(0 for _ in unit.nodes), details=False)
        if not times.stuck:
            yield unit.nodes, max(times.end)


def accesses_of(dag: CanonicalDag, plan: Plan) -> int:
    """Return about how many accesses a replay has to look at, nodes included; an estimate."""
    nodes = dag.nodes_count * NODE_ACCESSES
    return nodes + sum(_accesses(unit) for unit in plan.units)


def _accesses(unit: StreamingUnit) -> int:
    if is_too_large(unit):
        return _TOO_MANY
    volumes = without_twins(unit, (0,) * len(unit.nodes)).unit.volume
    return sum(min(volume, max(_ROUNDS * volume // unit.rounds, _FIRST_ACCESSES)) for volume in volumes)


def _sample(units: list[StreamingUnit], most: int) -> list[StreamingUnit]:
    """Return units that cost no more than a part of what is allowed each, every so many of them."""
    small = [unit for unit in units if _accesses(unit) * _FEWEST_SAMPLES <= most]
    total = sum(_accesses(unit) for unit in small)
    return small[:: max(-(-total // most), 1)]


def _each_on_its_own(dag: CanonicalDag, replay: Replay) -> Replay:
    own = np.where(dag.is_computational, np.arange(dag.nodes_count), NO_NODE).astype(np.int32)
    return replace(replay, pe=own, barrier=False)

"""Replays of schedules in which nothing streams and whose times are known: these are looked at once, as columns."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.plan import waits_of
from dfcompile.scheduler.simulation.replay import Replay, check_replay
from dfcompile.scheduler.simulation.result import Simulation


def settled(dag: CanonicalDag, replay: Replay, start: Int64, end: Int64) -> Simulation | None:
    """Return a replay without FIFOs and barriers if it takes given times; ``None`` if it has other ones, or has any.

    Each node runs from the last end that it waits for, and nobody waits for himself in the end. So only one set of
    times meets the equations of all nodes: that which a replay node by node finds.

    Raises:
        VerificationError: the replay does not fit the graph.
    """
    if replay.barrier or bool(replay.streamed.any()):
        return None
    check_replay(dag, replay)
    waiting, awaited, _ = waits_of(dag, replay)
    release = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(release, waiting, end[awaited])
    if not (np.array_equal(start, release) and np.array_equal(end, release + dag.work)):
        return None
    nothing = np.zeros(dag.edges_count, dtype=np.int64)
    for column in (release, nothing):
        column.setflags(write=False)
    return Simulation(int(end.max(initial=0)), release, end, nothing, nothing, nothing, ())

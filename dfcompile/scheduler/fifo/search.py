"""Smallest FIFO capacities that keep a schedule's makespan, by search against the simulator."""

from dataclasses import replace

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.scheduler.simulation import MakespanProbe, Replay, simulate


def minimal_fifo_sizes(dag: CanonicalDag, replay: Replay, allowed_cycles: int = 0) -> Int64:
    """Return capacities with which the replay is as fast as with FIFOs that are never full, shape [edges].

    No single one of them can be lowered without a later makespan or a deadlock; another choice may need fewer words in
    all. Smaller FIFOs never make a task earlier, so each edge is searched by bisection, in the order of edges within
    each group that streams together; edges that need no more than one element are set aside many at a time.

    Args:
        dag: the graph.
        replay: who runs where and what is streamed. The search begins with its capacities where they suffice, so that
            none grows; else with the most that FIFOs of any size would ever hold.
        allowed_cycles: a makespan that is good enough. Without barriers, FIFOs deep enough to let a task run far ahead
            of its consumers free its processing element early: often a few cycles for very many words.

    Returns:
        At least 1 for streamed edges, 0 for the others.

    Raises:
        InfeasibleError: the schedule cannot end whatever the capacities; the message names a wait cycle.
        VerificationError: the replay does not fit the graph.
    """
    free = simulate(dag, replace(replay, fifo_capacity=np.maximum(dag.edge_volume, 1)))
    if free.deadlock:
        links = ", ".join(wait.text(dag) for wait in free.deadlock)
        raise InfeasibleError(f"fifo sizes of {dag.name!r}: a deadlock with fifos of any size ({links})")
    limit = max(free.makespan_cycles, allowed_cycles)
    given = simulate(dag, replay)
    begin = free if given.deadlock or given.makespan_cycles > limit else given
    capacity = np.where(replay.streamed, np.maximum(begin.peak, 1), 0)
    probe = MakespanProbe(dag, replace(replay, fifo_capacity=capacity), limit)
    for group in probe.groups:
        _shrink(probe, group, list(group), capacity)
    sized = simulate(dag, replace(replay, fifo_capacity=capacity))
    if sized.deadlock or sized.makespan_cycles > limit:
        raise VerificationError(f"fifo sizes of {dag.name!r}: makespan {sized.makespan_cycles} against {limit} allowed")
    capacity.setflags(write=False)
    return capacity


def _shrink(probe: MakespanProbe, group: tuple[int, ...], edges: list[int], capacity: Int64) -> None:
    """Set edges to one element together if that works, else halve them; bisect an edge that remains."""
    edges = [edge for edge in edges if capacity[edge] > 1]
    if not edges:
        return
    if probe.lower(group, dict.fromkeys(edges, 1)):
        capacity[edges] = 1
    elif len(edges) == 1:
        _bisect(probe, group, edges[0], capacity)
    else:
        half = len(edges) // 2
        _shrink(probe, group, edges[:half], capacity)
        _shrink(probe, group, edges[half:], capacity)


def _bisect(probe: MakespanProbe, group: tuple[int, ...], edge: int, capacity: Int64) -> None:
    too_small, enough = 1, int(capacity[edge])
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if probe.lower(group, {edge: middle}):
            enough = middle
        else:
            too_small = middle
    capacity[edge] = enough

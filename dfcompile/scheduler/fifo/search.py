"""Smallest FIFO capacities that keep a schedule's makespan, by search against the simulator."""

from collections import deque
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64, frozen
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.records import replace
from dfcompile.scheduler.simulation import MakespanProbe, Replay, simulate


class _Open(Struct, frozen=True):
    """FIFOs of a group that may still be too large.

    Attributes:
        group: the streamed edges whose FIFOs can stop each other.
        edges: some of them; one alone is bisected.
        too_small: a capacity that is too small for one alone; 0 where even 1 was not tried.
    """

    group: tuple[int, ...]
    edges: tuple[int, ...]
    too_small: int = 0


def minimal_fifo_sizes(
    dag: CanonicalDag, replay: Replay, allowed_cycles: int = 0, most_tries: int | None = None
) -> Int64:
    """Return capacities with which the replay is as fast as with FIFOs that are never full, shape [edges].

    No single one of them can be lowered without a later makespan or a deadlock; another choice may need fewer words in
    all. Smaller FIFOs never make a task earlier, so each edge is searched by bisection within each group that streams
    together; edges that need no more than one element are set aside many at a time. All edges are looked at once
    before any is looked at again, so that a search that ends early has made many of them smaller.

    Args:
        dag: the graph.
        replay: who runs where and what is streamed. The search begins with its capacities where they suffice, so that
            none grows; else with the most that FIFOs of any size would ever hold.
        allowed_cycles: a makespan that is good enough. Without barriers, FIFOs deep enough to let a task run far ahead
            of its consumers free its processing element early: often a few cycles for very many words.
        most_tries: replays in the search; then capacities stay as they are. ``None`` is without limit.

    Returns:
        At least 1 for streamed edges, 0 for the others.

    Raises:
        InfeasibleError: the schedule cannot end whatever the capacities; the message names a wait cycle.
        VerificationError: the replay does not fit the graph.
    """
    free = simulate(dag, replay.unlimited(dag))
    if free.deadlock:
        links = ", ".join(wait.text(dag) for wait in free.deadlock)
        raise InfeasibleError(f"fifo sizes of {dag.name!r}: a deadlock with fifos of any size ({links})")
    limit = max(free.makespan_cycles, allowed_cycles)
    given = simulate(dag, replay)
    begin = free if given.deadlock or given.makespan_cycles > limit else given
    capacity = np.where(replay.streamed, np.maximum(begin.peak, 1), 0)
    probe = MakespanProbe(dag, replace(replay, fifo_capacity=capacity), limit)
    waiting = deque(_Open(group, group) for group in probe.groups)
    tries = 0
    while waiting and (most_tries is None or tries < most_tries):
        waiting.extend(_tried(probe, waiting.popleft(), capacity))
        tries += 1
    sized = simulate(dag, replace(replay, fifo_capacity=capacity))
    if sized.deadlock or sized.makespan_cycles > limit:
        raise VerificationError(f"fifo sizes of {dag.name!r}: makespan {sized.makespan_cycles} against {limit} allowed")
    return frozen(capacity)


def _tried(probe: MakespanProbe, step: _Open, capacity: Int64) -> Iterator[_Open]:
    """Make FIFOs smaller if that delays nothing: all to one element, or one alone halfway; yield what remains open."""
    edges = tuple(edge for edge in step.edges if capacity[edge] > step.too_small + 1)
    if not edges:
        return
    alone = edges[0] if len(edges) == 1 else None
    size = 1 if not step.too_small or alone is None else (step.too_small + int(capacity[alone])) // 2
    if probe.lower(step.group, dict.fromkeys(edges, size)):
        capacity[list(edges)] = size
        if size > 1:
            yield replace(step, edges=edges)
    elif alone is not None:
        yield replace(step, edges=edges, too_small=size)
    else:
        half = len(edges) // 2
        yield _Open(step.group, edges[:half])
        yield _Open(step.group, edges[half:])

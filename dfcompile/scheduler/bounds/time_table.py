"""The time-table bound: no schedule of so many cycles if more tasks must be on the machine at once than fit there.

Given a makespan T, a task has an earliest start and an earliest end, and a latest start. From its latest start to its
earliest end it is on its processing element in any such schedule: its *core*. Where cores of P tasks overlap no other
task can run: one that would have to begin there begins later, and cores grow. Where more than P overlap there is no
schedule of T cycles. The length of a task varies: one that streams stays until its producers have ended, however early
it began.

Source: time-tabling of a resource that several tasks share [baptiste01, 3.3.1]; a makespan is refuted, not a schedule
found. What streams demand of starts and ends is that of `lower_bound_cycles`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int32, Int64
from dfcompile.scheduler.bounds.precedence import Direction, directions, released, stream_delays

_VISITS = 300_000  # of nodes, about a second
_PASSES = 20  # over a graph with one makespan: more refute little
_FEWEST_PASSES = 8  # that fewer would refute anything is unlikely
_FIRST_STEP = 256  # the first step is such a part of what is known
_NEVER_LATE = 2**62
_MOST_ROUNDS = 12  # so often kinds of nodes are split; where they still are, nodes are hardly alike


class _Stretches(Struct, frozen=True):
    """Stretches of time that do not touch, by their beginnings and ends in ascending order."""

    begin: list[int]
    end: list[int]

    def turned(self, makespan: int) -> _Stretches:
        """Return them as they are seen from the end of the schedule."""
        return _Stretches(
            [makespan - time for time in reversed(self.end)], [makespan - time for time in reversed(self.begin)]
        )

    def first_room(self, begin: int, work: int, least_end: int, core: int) -> int:
        """Return the first time from ``begin`` on at which a task can start that meets no stretch before its core.

        Args:
            begin: when it can start otherwise.
            work: cycles that it takes at least.
            least_end: when it ends at the earliest.
            core: when its core begins, which may be part of a stretch.
        """
        number = bisect_right(self.end, begin)
        while number < len(self.begin) and self.begin[number] < min(core, max(begin + work, least_end)):
            begin = max(begin, min(self.end[number], core))
            number += 1
        return begin


class Windows(Struct, frozen=True):
    """What is known of any schedule, shape [nodes] each.

    Attributes:
        start: earliest start.
        end: earliest end.
        after_end: cycles from the end of the node to that of the schedule, at least.
        after_start: cycles from the start of the node to the end of the schedule, at least.
    """

    start: list[int]
    end: list[int]
    after_end: list[int]
    after_start: list[int]

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Return the same node by node."""
        return zip(self.start, self.end, self.after_end, self.after_start, strict=True)


def time_table_bound(dag: CanonicalDag, pes: int, windows: Windows, least: int) -> int:
    """Return the largest makespan below which time-tabling leaves no schedule, ``least`` or more.

    The first search takes cores as they are, in O(n log n) for each makespan. The second one lets cores grow as long as
    the visits of nodes that it may make last: so on large graphs it does less.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        windows: what is known already.
        least: a bound that is known already.
    """
    tasks = np.flatnonzero(dag.is_computational)
    if len(tasks) <= pes:
        return least  # all of them fit on the machine at once
    end, after_start = (np.array(column, dtype=np.int64)[tasks] for column in (windows.end, windows.after_start))
    least = _least_not_refuted(least, lambda cycles: _is_overfull(end, cycles - after_start, pes))
    if dag.nodes_count * _FEWEST_PASSES > _VISITS:
        return least
    return _least_not_refuted(least, _Growing(dag, pes, windows).refutes)


def _least_not_refuted(least: int, refutes: Callable[[int], bool]) -> int:
    """Return the smallest makespan from ``least`` on that is not refuted, by steps that double, then bisection."""
    low, high, step = least - 1, least, max(least // _FIRST_STEP, 1)
    while refutes(high):
        low, high, step = high, high + step, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return high


def _is_overfull(end: Int64, latest: Int64, pes: int) -> bool:
    """Return whether more than P cores, from the latest start to the earliest end, overlap somewhere."""
    core = latest < end
    times = np.concatenate([end[core], latest[core]])
    change = np.repeat(np.array([-1, 1]), int(core.sum()))
    held = np.cumsum(change[np.argsort(times, kind="stable")])  # ends come before starts
    return bool(held.max(initial=0) > pes)


class _Growing:
    """Cores that grow until nothing changes; nodes that are alike have the same."""

    def __init__(self, dag: CanonicalDag, pes: int, windows: Windows) -> None:
        columns = windows.start, windows.end, windows.after_end, windows.after_start
        nodes, count, (self._forward, self._backward) = merged(dag, *columns)
        self._pes = pes
        self._task = dag.is_computational[nodes].tolist()
        self._tasks = np.flatnonzero(self._task).tolist()
        self._work = dag.work[nodes].tolist()
        self._count = np.array(count)
        self._windows = Windows(*([column[node] for node in nodes] for column in columns))
        self._visits = _VISITS

    def refutes(self, makespan: int) -> bool:
        """Return whether there is no schedule of so many cycles, as far as the visits of nodes last."""
        found = self._windows
        known: tuple[Windows, _Stretches] | None = None
        for _ in range(_PASSES):
            full = self._full(found, makespan)
            if full is None or self._is_empty(found, makespan):
                return True
            if self._visits <= 0:
                return False
            self._visits -= 2 * len(self._task)
            # what follows from stretches in which no other task can run, first forwards, then backwards in time
            stale = [True] * len(self._task)  # of which nodes more may follow than did: all, or where something is new
            if known is not None and known[1] == full:
                stale = [before != now for before, now in zip(known[0].rows(), found.rows(), strict=True)]
            latest = [makespan - cycles for cycles in found.after_start]
            start, end = self._passed((self._forward, self._backward), (found.start, found.end), latest, full, stale[:])
            latest = [makespan - cycles for cycles in found.end]
            turned = full.turned(makespan)
            back = self._backward, self._forward
            after_end, after_start = self._passed(back, (found.after_end, found.after_start), latest, turned, stale)
            grown = Windows(start, end, after_end, after_start)
            if grown == found:
                return False
            known, found = (found, full), grown
        return False

    def _is_empty(self, found: Windows, makespan: int) -> bool:
        """Return whether some task has no time left to start, or to end."""
        return any(
            found.end[task] + found.after_end[task] > makespan or found.start[task] + found.after_start[task] > makespan
            for task in self._tasks
        )

    def _full(self, found: Windows, makespan: int) -> _Stretches | None:
        """Return the stretches of time in which cores of P tasks overlap; ``None`` if more of them do."""
        latest, end = makespan - np.array(found.after_start)[self._tasks], np.array(found.end)[self._tasks]
        is_core = latest < end
        count = self._count[self._tasks][is_core]
        times, change = np.concatenate([latest[is_core], end[is_core]]), np.concatenate([count, -count])
        order = np.lexsort((change, times))  # ends come before starts
        times, held = times[order], np.cumsum(change[order])
        if held.max(initial=0) > self._pes:
            return None
        is_last = np.ones(len(times), dtype=np.bool_)
        is_last[:-1] = times[1:] != times[:-1]
        times, full = times[is_last], (held[is_last] == self._pes).astype(np.int8)
        step = np.diff(full, prepend=0)
        return _Stretches(times[step > 0].tolist(), times[step < 0].tolist())

    def _passed(
        self,
        directions: tuple[Direction, Direction],
        known: tuple[list[int], list[int]],
        latest: list[int],
        full: _Stretches,
        stale: list[bool],
    ) -> tuple[list[int], list[int]]:
        """Return earliest starts and ends of all nodes in one direction of time.

        Args:
            directions: the order of nodes, and what each waits for; and the same of the other direction of time.
            known: earliest starts and ends.
            latest: latest start of each node: there its core begins, if that is before its earliest end.
            full: stretches in which the cores of P tasks overlap.
            stale: nodes of which more may follow than is known; those behind them become such as well.
        """
        direction, other_way = directions
        start, end = known[0][:], known[1][:]
        for node in direction.order:
            if not stale[node]:
                continue
            begin, least = released(direction.awaited[node], start, end, (start[node], end[node]))
            if self._task[node]:
                work = self._work[node]
                core = latest[node] if latest[node] < known[1][node] else _NEVER_LATE
                begin = full.first_room(begin, work, least, core)
                least = max(begin + work, least)
            else:
                least = begin
            if begin != start[node] or least != end[node]:
                start[node], end[node] = begin, least
                for follower, _, _ in other_way.awaited[node]:
                    stale[follower] = True
        return start, end


def merged(dag: CanonicalDag, *columns: Sequence[int]) -> tuple[list[int], list[int], tuple[Direction, Direction]]:
    """Return the kinds of nodes: alike in figures, and reading from and read by as many of each kind.

    What holds of one of a kind, and of what it waits for, holds of all of the kind. The coarsest such kinds are found
    by splitting those that are not, from those of equal figures on.

    Args:
        dag: the graph.
        columns: figures of the nodes, shape [nodes] each.

    Returns:
        The first node of each kind and how many there are, shape [kinds] each, and what kinds wait for, forwards and
        backwards in time.

    Source: partition refinement [paige87], here in rounds over the whole graph.
    """
    kind = _kinds(dag, columns)
    nodes, first = np.arange(dag.nodes_count), np.full(kind.max(initial=-1) + 1, dag.nodes_count)
    np.minimum.at(first, kind, nodes)
    kind_of, node = kind.tolist(), first.tolist()

    def quotient(direction: Direction) -> Direction:
        # Of each node of a kind another one of any kind that follows it comes later, so the last ones are in order.
        last = {kind_of[each]: None for each in reversed(direction.order)}
        awaited = [list({(kind_of[other], a, b): None for other, a, b in direction.awaited[each]}) for each in node]
        return Direction(list(last)[::-1], awaited)

    ahead, back = directions(dag)
    return node, np.bincount(kind).tolist(), (quotient(ahead), quotient(back))


def _kinds(dag: CanonicalDag, columns: Sequence[Sequence[int]]) -> Int64:
    """Return the number of the kind of each node, shape [nodes]; each is its own where that takes too many rounds."""
    figures = np.array([dag.is_computational, dag.work, *stream_delays(dag), *columns], dtype=np.int64)
    kind = np.unique(figures, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    kinds = kind.max(initial=-1) + 1
    for _ in range(_MOST_ROUNDS):
        read = _neighbours(dag.in_start, dag.in_edges, dag.edge_source, kind)
        written = _neighbours(dag.out_start, dag.out_edges, dag.edge_target, kind)
        numbers: dict[tuple[int, bytes, bytes], int] = {}
        of_node = (numbers.setdefault(alike, len(numbers)) for alike in zip(kind.tolist(), read, written, strict=True))
        kind = np.fromiter(of_node, dtype=np.int64, count=dag.nodes_count)
        if len(numbers) == kinds:
            return kind
        kinds = len(numbers)
    return np.arange(dag.nodes_count)


def _neighbours(start: Int64, edges: Int32, other: Int32, kind: Int64) -> list[bytes]:
    """Return the kinds of the nodes at the other ends of each node's edges, in ascending order."""
    kinds = kind[other[edges]]
    of_node = np.repeat(np.arange(len(start) - 1), np.diff(start))
    ordered = kinds[np.lexsort((kinds, of_node))]
    return [ordered[begin:end].tobytes() for begin, end in pairwise(start.tolist())]

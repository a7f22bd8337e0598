"""Access times of a stretch one access at a time: always ends, and finds deadlocks."""

from collections import deque

import numpy as np

from dfcompile.scheduler.simulation.result import FINISHED, NEVER, NOT_STARTED
from dfcompile.scheduler.simulation.stretch import LONG_AGO, Stretch


def step(stretch: Stretch) -> list[int]:
    """Run every task as far as it gets; return the edge at which each is stuck, or ``FINISHED`` or ``NOT_STARTED``.

    The times are those of `relax`. After a deadlock the accesses that never take place are at ``LONG_AGO``.

    Args:
        stretch: of tasks that may wait for the end of one another, with ``clock`` set; it, ``sent`` and ``gets`` are
            filled.
    """
    return _Steps(stretch).run()


class _Steps:
    """The state of the run: where each task stands, and the accesses so far."""

    def __init__(self, stretch: Stretch) -> None:
        unit = stretch.unit
        self._unit, self._stretch, self._followers = unit, stretch, unit.followers
        self._stuck = [NOT_STARTED] * len(unit.nodes)
        self._place = [0] * len(unit.nodes)
        self._delay = list(stretch.clock)
        # A task that may never run waits for one more end than there will be.
        self._missing = [len(waits) + (clock == NEVER) for waits, clock in zip(unit.waits, stretch.clock, strict=True)]
        self._puts = [sent[:count].tolist() for sent, count in zip(stretch.sent, stretch.pending, strict=True)]
        self._gets = [gets[:past].tolist() for gets, past in zip(stretch.gets, stretch.past, strict=True)]
        self._sequences = [_listed(stretch, node) for node in range(len(unit.nodes))]

    def run(self) -> list[int]:
        ready = deque(node for node, missing in enumerate(self._missing) if missing == 0)
        while ready:
            node = ready.popleft()
            stuck, woken = self._advance(node)
            self._stuck[node] = stuck
            ready.extend(woken)
            if stuck == FINISHED:
                ready.extend(self._finish(node))
        self._write_back()
        return self._stuck

    def _advance(self, node: int) -> tuple[int, list[int]]:
        """Run a task until it is stuck; return where, and the neighbours that its accesses let go on."""
        unit, past, stuck = self._unit, self._stretch.past, self._stuck
        accesses, waits = self._sequences[node]
        delay = self._delay[node]
        woken: list[int] = []
        place = self._place[node]
        stuck[node] = FINISHED  # runs: nobody has to wake it
        while place < len(accesses):
            access, wait = accesses[place], waits[place]
            is_read = access >= 0
            edge = access if is_read else ~access
            mine, other = (self._gets, self._puts) if is_read else (self._puts, self._gets)
            number = len(mine[edge]) - (past[edge] if is_read else 0)
            if is_read or past[edge]:
                if number >= len(other[edge]):
                    self._place[node], self._delay[node] = place, delay
                    return edge, woken
                delay = max(delay, other[edge][number] - wait)
            mine[edge].append(delay + wait)
            neighbour = unit.source[edge] if is_read else unit.target[edge]
            if stuck[neighbour] == edge:
                stuck[neighbour] = FINISHED
                woken.append(neighbour)
            place += 1
        self._place[node], self._delay[node] = place, delay
        return FINISHED, woken

    def _finish(self, node: int) -> list[int]:
        end = self._delay[node] + self._stretch.sequences[node].cycles
        started = []
        for follower in self._followers[node]:
            self._delay[follower] = max(self._delay[follower], end)
            self._missing[follower] -= 1
            if self._missing[follower] == 0:
                self._stretch.clock[follower] = self._delay[follower]
                started.append(follower)
        return started

    def _write_back(self) -> None:
        stretch = self._stretch
        for edge, (puts, gets) in enumerate(zip(self._puts, self._gets, strict=True)):
            stretch.puts(edge)[:] = LONG_AGO
            stretch.sent[edge][: len(puts)] = puts
            stretch.reads(edge)[:] = LONG_AGO
            stretch.gets[edge][: len(gets)] = gets


def _listed(stretch: Stretch, node: int) -> tuple[list[int], list[int]]:
    """Return for each access of a node its edge, of a write ``~edge``, and its waits."""
    found = list(stretch.accesses(node))
    edges, waits = np.empty((2, sum(len(at) for _, _, at, _ in found)), dtype=np.int64)
    for edge, is_read, at, waited in found:
        edges[at], waits[at] = edge if is_read else ~edge, waited
    return edges.tolist(), waits.tolist()

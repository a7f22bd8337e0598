"""Access times of a stretch one access at a time: always ends, and finds deadlocks."""

from collections import deque

import numpy as np

from dfcompile.scheduler.simulation.access_sequence import numbers
from dfcompile.scheduler.simulation.result import NEVER
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch

FINISHED = -1
NOT_STARTED = -2


def step(unit: StreamingUnit, stretch: Stretch) -> list[int]:
    """Run every task as far as it gets; return the edge at which each is stuck, or ``FINISHED`` or ``NOT_STARTED``.

    The times are those of `relax`. After a deadlock the accesses that never take place are at ``LONG_AGO``.

    Args:
        unit: the tasks; they may wait for the end of one another.
        stretch: with ``clock`` set; it, ``sent`` and ``gets`` are filled.
    """
    return _Steps(unit, stretch).run()


class _Steps:
    """The state of the run: where each task stands, and the accesses so far."""

    def __init__(self, unit: StreamingUnit, stretch: Stretch) -> None:
        self._unit = unit
        self._stretch = stretch
        self._stuck = [NOT_STARTED] * len(unit.nodes)
        self._place = [0] * len(unit.nodes)
        self._delay = list(stretch.clock)
        self._end = [LONG_AGO] * len(unit.nodes)
        self._followers: list[list[int]] = [[] for _ in unit.nodes]
        for node, waits in enumerate(unit.waits):
            for other in waits:
                self._followers[other].append(node)
        # A task that may never run waits for one more end than there will be.
        self._missing = [len(waits) + (clock == NEVER) for waits, clock in zip(unit.waits, stretch.clock, strict=True)]
        self._puts = [sent[:count].tolist() for sent, count in zip(stretch.sent, stretch.pending, strict=True)]
        self._gets = [gets[:past].tolist() for gets, past in zip(stretch.gets, stretch.past, strict=True)]
        self._sequences = [_listed(unit, stretch, node) for node in range(len(unit.nodes))]

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
        edges, waits = self._sequences[node]
        inputs = len(unit.inputs[node])
        delay = self._delay[node]
        woken: list[int] = []
        place = self._place[node]
        stuck[node] = FINISHED  # runs: nobody has to wake it
        while place < len(edges):
            slot, wait = edges[place], waits[place]
            edge = unit.inputs[node][slot] if slot < inputs else unit.outputs[node][slot - inputs]
            mine, other = (self._gets, self._puts) if slot < inputs else (self._puts, self._gets)
            number = len(mine[edge]) - (past[edge] if slot < inputs else 0)
            if slot < inputs or past[edge]:
                if number >= len(other[edge]):
                    self._place[node], self._delay[node] = place, delay
                    return edge, woken
                delay = max(delay, other[edge][number] - wait)
            mine[edge].append(delay + wait)
            neighbour = unit.source[edge] if slot < inputs else unit.target[edge]
            if stuck[neighbour] == edge:
                stuck[neighbour] = FINISHED
                woken.append(neighbour)
            place += 1
        self._place[node], self._delay[node] = place, delay
        return FINISHED, woken

    def _finish(self, node: int) -> list[int]:
        self._end[node] = self._delay[node] + self._stretch.sequences[node].cycles
        started = []
        for follower in self._followers[node]:
            self._delay[follower] = max(self._delay[follower], self._end[node])
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


def _listed(unit: StreamingUnit, stretch: Stretch, node: int) -> tuple[list[int], list[int]]:
    """Return for each access of a node its edge, as a place among inputs and outputs, and its waits."""
    sequence = stretch.sequences[node]
    inputs, outputs = len(unit.inputs[node]), len(unit.outputs[node])
    read, write = np.arange(sequence.reads), np.arange(sequence.writes)
    puts_before, gets_before = numbers(sequence.puts_before), numbers(sequence.gets_before)
    length = sequence.reads * inputs + sequence.writes * outputs
    slots, waits = np.empty(length, dtype=np.int64), np.empty(length, dtype=np.int64)
    for place in range(inputs):
        position = read * inputs + puts_before * outputs + place
        slots[position], waits[position] = place, sequence.get_waits
    for place in range(outputs):
        position = gets_before * inputs + write * outputs + place
        slots[position], waits[position] = inputs + place, sequence.put_waits
    return slots.tolist(), waits.tolist()

"""Access times of a stretch: whole sequences at a time, until none is too early; or one by one, to find deadlocks."""

from collections import deque
from itertools import accumulate

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.replay import FINISHED, NEVER, NOT_STARTED
from dfcompile.scheduler.simulation.stretch import LONG_AGO, Stretch, later


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
        unit = self._unit
        ready = deque(node for node, missing in enumerate(self._missing) if missing == 0)
        while ready:
            node = ready.popleft()
            stuck, woken = self._advance(node)
            self._stuck[node] = stuck
            ready.extend(woken)
            if stuck == FINISHED:
                end = self._delay[node] + self._stretch.sequences[node].cycles + unit.draining[node]
                for follower in self._followers[node]:
                    self._delay[follower] = max(self._delay[follower], end + unit.filling[follower])
                    self._missing[follower] -= 1
                    if self._missing[follower] == 0:
                        self._stretch.clock[follower] = self._delay[follower]
                        ready.append(follower)
        stretch = self._stretch
        for edge, (puts, gets) in enumerate(zip(self._puts, self._gets, strict=True)):
            stretch.puts(edge)[:] = LONG_AGO
            stretch.sent[edge][: len(puts)] = puts
            stretch.reads(edge)[:] = LONG_AGO
            stretch.gets[edge][: len(gets)] = gets
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
                delay = max(delay, other[edge][number] + (unit.forward[edge] if is_read else unit.hop_cycles) - wait)
            mine[edge].append(delay + wait)
            neighbour = unit.source[edge] if is_read else unit.target[edge]
            if stuck[neighbour] == edge:
                stuck[neighbour] = FINISHED
                woken.append(neighbour)
            place += 1
        self._place[node], self._delay[node] = place, delay
        return FINISHED, woken


def _listed(stretch: Stretch, node: int) -> tuple[list[int], list[int]]:
    """Return for each access of a node its edge, of a write ``~edge``, and its waits."""
    found = list(stretch.accesses(node))
    edges, waits = np.empty((2, sum(len(at) for _, _, at, _ in found)), dtype=np.int64)
    for edge, is_read, at, waited in found:
        edges[at], waits[at] = edge if is_read else ~edge, waited
    return edges.tolist(), waits.tolist()


_VISITS_PER_NODE = 6
_ACCESSES_PER_VISIT = 60  # stepping through so many accesses takes as long as one visit


def relax(stretch: Stretch) -> bool:
    """Find the earliest times that respect every sequence and every FIFO; return whether they were found.

    A read waits for its write, a write for the read that frees its place. Beginning with no waits at all, tasks are
    visited in their order, then back, and so on, and delay their accesses as far as their neighbours demand;
    a task is visited again only if an access of it is too early. The earliest times are the least solution, so the
    order of the visits does not matter. In a deadlock there is none: the visits are limited.

    Args:
        stretch: of tasks whose ends come in turn, with ``clock`` set; ``sent`` and ``gets`` are filled. The clock of
            tasks that wait for ends is set to the last of these.
    """
    unit = stretch.unit
    for edge in range(len(unit.edges)):
        stretch.reads(edge)[:] = LONG_AGO  # a writer is visited before its reader: what it writes is there by then
    nodes = range(len(unit.nodes))
    dirty = [True for _ in nodes]
    release, end, followers = list(stretch.clock), [LONG_AGO for _ in nodes], unit.followers
    accesses = sum(len(sent) + len(gets) for sent, gets in zip(stretch.sent, stretch.gets, strict=True))
    visits = _VISITS_PER_NODE * len(nodes) + accesses // _ACCESSES_PER_VISIT
    forward = True
    while any(dirty):
        for node in nodes if forward else reversed(nodes):
            if dirty[node]:
                dirty[node] = False
                awaited = (end[other] + unit.filling[node] for other in unit.waits[node])
                stretch.clock[node] = max([release[node], *awaited])
                _visit(stretch, node)
                _mark(stretch, node, dirty)
                visits -= 1
                if followers[node] and (last := stretch.end(node) + unit.draining[node]) != end[node]:
                    end[node] = last
                    for follower in followers[node]:
                        dirty[follower] = True
        if visits < 0:
            return False
        forward = not forward
    return True


def _visit(stretch: Stretch, node: int) -> None:
    """Delay the accesses of a task as far as its neighbours demand.

    In a row of reads, one of every input, each waits for those before it in the row, for the rows before, and for the
    writes before: the largest of three running maxima. So with writes.
    """
    sequence, clock = stretch.sequences[node], stretch.clock[node]
    inputs, outputs = stretch.unit.inputs[node], stretch.unit.outputs[node]
    read_at, write_at = stretch.unit.read_at, stretch.unit.write_at
    arrived = (stretch.arrivals(edge) - later(sequence.get_waits, read_at[edge]) for edge in inputs)
    freed = (
        stretch.frees(edge) - later(sequence.put_waits, write_at[edge]) if stretch.past[edge] else None
        for edge in outputs
    )
    read_row, write_row = list(accumulate(arrived, _later)), list(accumulate(freed, _later))
    reads_before, writes_before = _running(read_row, clock), _running(write_row, clock)
    before_reads = None if writes_before is None else writes_before[sequence.puts_before]
    before_writes = None if reads_before is None else reads_before[sequence.gets_before]
    reads, puts = [stretch.reads(edge) for edge in inputs], [stretch.puts(edge) for edge in outputs]
    _put_back(reads, read_row, reads_before, before_reads, (clock, sequence.get_waits))
    _put_back(puts, write_row, writes_before, before_writes, (clock, sequence.put_waits))
    for times, edges, turns in ((reads, inputs, read_at), (puts, outputs, write_at)):
        for column, edge in zip(times, edges, strict=True):
            if turns[edge]:
                np.add(column, turns[edge], out=column)


def _later(before: Int64 | None, delay: Int64 | None) -> Int64 | None:
    """Return the delays of accesses that also wait for the one before them in their row."""
    if before is None or delay is None:
        return before if delay is None else delay
    return np.maximum(before, delay, out=delay)


def _running(row: list[Int64 | None], clock: int) -> Int64 | None:
    """Return the largest delay up to each row, beginning with the clock; ``None`` if nothing is awaited."""
    delay = row[-1] if row else None
    return None if delay is None else running_maxima(clock, delay)


def running_maxima(clock: int, delays: Int64) -> Int64:
    """Return the largest of a clock and the delays up to each, beginning with the clock alone, shape [delays + 1]."""
    largest = np.empty(len(delays) + 1, dtype=np.int64)
    largest[0], largest[1:] = clock, delays
    return np.maximum.accumulate(largest, out=largest)


def _put_back(
    times: list[Int64], row: list[Int64 | None], before: Int64 | None, others: Int64 | None, base: tuple[int, Int64]
) -> None:
    """Write the times of a task's reads, or of its writes.

    Args:
        times: of each place in the row; filled.
        row: delays demanded at each place, those before it in the row included.
        before: largest delays up to each row, from the clock on.
        others: largest delays of the writes before each row of reads, or of the reads before each row of writes.
        base: clock, and waits of each row.
    """
    clock, waits = base
    last = len(times) - 1
    for place, (column, demanded) in enumerate(zip(times, row, strict=True)):
        if before is None:
            delay = None
        elif place == last:
            delay = before[1:]  # with all that is demanded in the row
        else:
            delay = before[:-1] if demanded is None else np.maximum(before[:-1], demanded)
        if delay is None:
            np.add(clock if others is None else others, waits, out=column)
        elif others is None:
            np.add(delay, waits, out=column)
        else:
            np.maximum(delay, others, out=column)
            np.add(column, waits, out=column)


def _mark(stretch: Stretch, node: int, dirty: list[bool]) -> None:
    unit = stretch.unit
    for edge in unit.inputs[node]:
        producer = unit.source[edge]
        if stretch.past[edge] and not dirty[producer]:
            dirty[producer] = _any_later(stretch.frees(edge), stretch.puts(edge))
    for edge in unit.outputs[node]:
        consumer = unit.target[edge]
        if not dirty[consumer]:
            dirty[consumer] = _any_later(stretch.arrivals(edge), stretch.reads(edge))


def _any_later(awaited: Int64, access: Int64) -> bool:
    return bool((awaited > access).any())

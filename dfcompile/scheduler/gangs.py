"""Gangs, the tasks that must be on the machine together; and list streaming, which places them without barriers."""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from heapq import heappop, heappush

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.analysis import order_from_sources
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.distinct import numbered
from dfcompile.records import replace
from dfcompile.scheduler import timing
from dfcompile.scheduler.blocks import Blocks, by_urgency
from dfcompile.scheduler.schedules import NO_PE


class Gangs(Struct, frozen=True, eq=False):
    """The smallest units of a partition that can be placed one by one.

    A gang is a streaming component of a block, or several that wait for one another through memory; a buffer or
    pseudo node that no gang waits for in a circle is a gang of its own, without tasks. No circle of dependences
    joins gangs. Once a gang begins, each of its nodes follows at a fixed distance: data of other gangs are there in
    time.

    Attributes:
        count: number of gangs.
        gang: gang of each node, shape [nodes].
        order: all nodes, those of a gang topologically, shape [nodes].
        start: cycles from the beginning of its gang until each node starts, shape [nodes].
        first_out: until its first output, shape [nodes].
        last_out: until its last output, shape [nodes].
        reading: cycles from the start of each node to when it needs its last element at least, shape [nodes].
        relayed: which edges may stream from gang to gang, through FIFOs that hold all of them, shape [edges].
        hardware: what FIFOs and tasks take.
    """

    count: int
    gang: Int32
    order: Int32
    start: list[int]
    first_out: list[int]
    last_out: list[int]
    reading: Int64
    relayed: Bool
    hardware: Hardware

    def largest(self, dag: CanonicalDag) -> int:
        """Return the tasks of the largest gang."""
        return int(np.bincount(self.gang[dag.is_computational]).max(initial=0))


def gangs_of(
    dag: CanonicalDag, blocks: Blocks, streamed: Bool, relay_elements: int, hardware: Hardware = LITERATURE
) -> Gangs:
    """Split the blocks of a partition into gangs.

    Args:
        dag: the graph.
        blocks: its blocks.
        streamed: which edges stream inside blocks, shape [edges].
        relay_elements: an edge of at most so many may stream from gang to gang, through a FIFO that holds all of it.
        hardware: what FIFOs and tasks take.
    """
    # number the components, those that wait for one another through memory as one; memory never leaves a block
    component = timing.streamed_components(dag, streamed)
    source, target = component[dag.edge_source], component[dag.edge_target]
    memory = ~streamed & (blocks.block[dag.edge_source] == blocks.block[dag.edge_target])
    circular = np.zeros(dag.edges_count, dtype=np.bool_)
    between = np.flatnonzero(memory & (source != target))
    circular[between] = timing.edges_on_loops(dag.nodes_count, source[between], target[between])
    if circular.any():
        component = timing.streamed_components(dag, streamed | circular)
    gang = numbered(component)[1].astype(np.int32)
    inside = dag.in_edges[gang[dag.edge_source[dag.in_edges]] == gang[dag.edge_target[dag.in_edges]]]
    offsets = timing.node_offsets(dag, blocks.block, timing.peak_volumes(dag, streamed, hardware), streamed, hardware)
    waits = inside, np.zeros(dag.nodes_count, dtype=np.int32)
    times = timing.node_times(dag, blocks.order, offsets, streamed, waits, hardware.hop_cycles)
    is_small = dag.edge_volume <= relay_elements
    relayed = (gang[dag.edge_source] != gang[dag.edge_target]) & dag.between_tasks & is_small
    count = int(gang.max(initial=-1)) + 1
    return Gangs(count, gang, blocks.order, *times, timing.reading_offsets(dag, streamed, hardware), relayed, hardware)


def gang_sequence(dag: CanonicalDag, gang: Int32, block: Int32) -> list[int]:
    """Return the gangs so that each comes after those that it waits for, and block after block."""
    source, target = gang[dag.edge_source], gang[dag.edge_target]
    block_of = np.zeros(int(gang.max(initial=-1)) + 1, dtype=np.int64)
    block_of[gang] = block
    return by_urgency(block_of.tolist(), source[source != target], target[source != target])


_SEVERAL = -1  # tasks of a gang, or none


class Placing(Struct, frozen=True, eq=False):
    """Where and when gangs run.

    Attributes:
        sequence: the gangs in the order in which they were placed: on every processing element and along every edge
            they come in this order.
        begin: cycle from which the offsets of each gang count, shape [gangs].
        pe: processing element of each task, ``NO_PE`` for other nodes, shape [nodes].
        relayed: which edges stream from one gang to another, whose consumer starts before the producer ends, [edges].
        makespan_cycles: when the last node ends.
    """

    sequence: list[int]
    begin: list[int]
    pe: list[int]
    relayed: Bool
    makespan_cycles: int


def place(dag: CanonicalDag, gangs: Gangs, pes: int) -> Placing:
    """Place gangs by decreasing urgency, each as early as its data and processing elements allow.

    The clock stands where the next processing element gets free. Of the gangs whose data are there the most urgent one
    is placed next; urgency is the longest way of gangs to the end of the schedule. Tasks of a gang are on different
    elements; an element serves from the start of a task to its last output, then the next task. Of the elements that
    are free in time a task gets the one that was busy longest. With G gangs this takes O(G log G) steps and one search
    among P elements per task.
    """
    return _Placer(dag, gangs, pes).by_urgency()


def place_in_order(dag: CanonicalDag, gangs: Gangs, pes: int, sequence: list[int]) -> Placing:
    """Place gangs in a given order, each as early as its data and processing elements allow.

    In the order of blocks of at most P tasks no gang begins later than with barriers: all gangs before have been
    placed no later than there, so at the barrier their data are there and all elements are free.
    """
    return _Placer(dag, gangs, pes).in_order(sequence)


def place_shortest(dag: CanonicalDag, gangs: Gangs, pes: int, sequence: list[int]) -> Placing:
    """Place gangs by urgency and in a given order, with streams from gang to gang and without; take the shortest.

    Between equals it is the one without: FIFOs that hold whole streams are large.
    """
    through_memory = replace(gangs, relayed=np.zeros_like(gangs.relayed))
    choices = [through_memory, gangs] if gangs.relayed.any() else [gangs]
    placed = [each for one in choices for each in (place(dag, one, pes), place_in_order(dag, one, pes, sequence))]
    return min(placed, key=lambda placing: placing.makespan_cycles)


class _Placer:
    """What has been placed so far, and what waits."""

    def __init__(self, dag: CanonicalDag, gangs: Gangs, pes: int) -> None:
        self._dag, self._gangs = dag, gangs
        self._free = [(0, pe) for pe in range(min(pes, max(dag.tasks_count, 1)))]  # no more can be used
        self._last_pe = len(self._free)  # above the numbers of all
        tasks = np.flatnonzero(dag.is_computational)  # by gang, those of one by increasing start
        tasks = tasks[np.lexsort((tasks, np.array(gangs.start, dtype=np.int64)[tasks], gangs.gang[tasks]))]
        rows = np.searchsorted(gangs.gang[tasks], np.arange(gangs.count + 1))
        self._task, self._task_row = _packed(tasks), _packed(rows)
        # The task of a gang of one, which most are; ``_SEVERAL`` of others.
        self._only: list[int] = np.where(np.diff(rows) == 1, np.append(tasks, _SEVERAL)[rows[:-1]], _SEVERAL).tolist()
        self._gate, self._follower, self._row = _links(dag, gangs)
        self._missing: list[int] = np.bincount(self._follower, minlength=gangs.count).tolist()
        self._ready_at = [0] * gangs.count
        self._urgency: list[int] = []
        self._waiting: list[tuple[int, int, int]] = []  # (data are there, -urgency, gang)
        self._pool: list[tuple[int, int]] = []  # (-urgency, gang)
        self._begin = [0] * gangs.count
        self._pe = [NO_PE] * dag.nodes_count
        self._sequence: list[int] = []
        self._latest = 0

    def _placing(self) -> Placing:
        gangs, begin = self._gangs, np.array(self._begin, dtype=np.int64)
        relayed = np.flatnonzero(gangs.relayed)
        producer, consumer = self._dag.edge_source[relayed], self._dag.edge_target[relayed]
        start = np.array(gangs.start, dtype=np.int64)[consumer] + begin[gangs.gang[consumer]]
        last_out = np.array(gangs.last_out, dtype=np.int64)[producer] + begin[gangs.gang[producer]]
        early = np.zeros_like(gangs.relayed)
        early[relayed] = start < last_out  # else memory does as well
        return Placing(self._sequence, self._begin, self._pe, early, self._latest)

    def in_order(self, sequence: list[int]) -> Placing:
        for gang in sequence:
            self._put(gang, self._earliest(gang))
        return self._placing()

    def by_urgency(self) -> Placing:
        self._urgency = self._urgencies()
        for gang in [gang for gang, missing in enumerate(self._missing) if not missing]:
            self._admit(gang)
        while self._waiting or self._pool:
            now = self._free[0][0] if self._pool else max(self._free[0][0], self._waiting[0][0])
            while self._waiting and self._waiting[0][0] <= now:
                _, urgency, gang = heappop(self._waiting)
                heappush(self._pool, (urgency, gang))
            gang = heappop(self._pool)[1]
            self._place(gang, self._earliest(gang))
        return self._placing()

    def _tasks(self, gang: int) -> array[int]:
        return self._task[self._task_row[gang] : self._task_row[gang + 1]]

    def _admit(self, gang: int) -> None:
        if self._task_row[gang] < self._task_row[gang + 1]:
            heappush(self._waiting, (self._ready_at[gang], -self._urgency[gang], gang))
        else:
            self._place(gang, self._ready_at[gang])

    def _earliest(self, gang: int) -> int:
        begin, start, only = self._ready_at[gang], self._gangs.start, self._only[gang]
        if only != _SEVERAL:
            return max(begin, self._free[0][0] - start[only])
        for (free, _), task in zip(self._free, self._tasks(gang), strict=False):
            if free - start[task] > begin:
                begin = free - start[task]
        return begin

    def _place(self, gang: int, begin: int) -> None:
        """Place a gang, and at once all nodes without tasks that waited for it alone."""
        pending = [(gang, begin)]
        while pending:
            for follower in self._put(*pending.pop()):
                if self._only[follower] != _SEVERAL or self._tasks(follower):
                    self._admit(follower)
                else:
                    pending.append((follower, self._ready_at[follower]))

    def _put(self, gang: int, begin: int) -> list[int]:
        """Place a gang; return those that wait for nothing more."""
        self._begin[gang] = begin
        self._sequence.append(gang)
        self._occupy(gang, begin)
        released = []
        gates, followers, ready_at, missing = self._gate, self._follower, self._ready_at, self._missing
        for link in range(self._row[gang], self._row[gang + 1]):
            follower = followers[link]
            ready = begin + gates[link]
            if ready > ready_at[follower]:
                ready_at[follower] = ready
            missing[follower] -= 1
            if not missing[follower]:
                released.append(follower)
        return released

    def _occupy(self, gang: int, begin: int) -> None:
        start, last_out, free, only = self._gangs.start, self._gangs.last_out, self._free, self._only[gang]
        if only != _SEVERAL:
            pe = free.pop(bisect_right(free, (begin + start[only], self._last_pe)) - 1)[1]
            self._pe[only] = pe
            end = begin + last_out[only]
            insort(free, (end, pe))
            if end > self._latest:
                self._latest = end
            return
        taken = []
        for task in self._tasks(gang):
            _, pe = free.pop(bisect_right(free, (begin + start[task], self._last_pe)) - 1)
            self._pe[task] = pe
            taken.append((begin + last_out[task], pe))
        for entry in taken:
            insort(free, entry)
            if entry[0] > self._latest:
                self._latest = entry[0]

    def _urgencies(self) -> list[int]:
        """Return the longest way from the beginning of each gang to the end, over gangs."""
        gangs, task = self._gangs, self._dag.is_computational
        longest = np.zeros(gangs.count, dtype=np.int64)
        np.maximum.at(longest, gangs.gang[task], np.array(gangs.last_out, dtype=np.int64)[task])
        urgency: list[int] = longest.tolist()
        source = np.repeat(np.arange(gangs.count), np.diff(np.array(self._row)))
        order = order_from_sources(gangs.count, source, np.array(self._follower, dtype=np.int64))
        for gang in reversed(order):
            for link in range(self._row[gang], self._row[gang + 1]):
                way = self._gate[link] + urgency[self._follower[link]]
                if way > urgency[gang]:
                    urgency[gang] = way
        return urgency


def _links(dag: CanonicalDag, gangs: Gangs) -> tuple[array[int], array[int], array[int]]:
    """Return, sorted by gang, how long after its beginning each following gang may begin, that gang, and the rows."""
    start, first_out, last_out = (
        np.array(column, dtype=np.int64) for column in (gangs.start, gangs.first_out, gangs.last_out)
    )
    source, target = gangs.gang[dag.edge_source], gangs.gang[dag.edge_target]
    links = np.flatnonzero(source != target)
    links = links[np.argsort(source[links], kind="stable")]
    producer, consumer = dag.edge_source[links], dag.edge_target[links]
    # A relay has the first element in time for the first read, and the last one for the last: both are evenly spread.
    in_relay = np.maximum(first_out[producer], last_out[producer] - gangs.reading[consumer]) + gangs.hardware.hop_cycles
    gate = np.where(gangs.relayed[links], in_relay, last_out[producer]) - start[consumer]
    row = np.searchsorted(source[links], np.arange(gangs.count + 1))
    return _packed(gate), _packed(target[links]), _packed(row)


def _packed(column: Int32 | Int64) -> array[int]:
    """Return a column as what is read one by one as fast as a list, at a fifth of its size."""
    return array("q", column.astype(np.int64).tobytes())

"""List scheduling task by task: who runs where and in which order, if every stream has all the room it needs.

A task keeps its processing element from its start to its end. It starts when the first elements of its producers are
there, takes its work at least, and ends after its producers. So the earlier it starts before they end, the longer it
keeps its element; and the earlier its consumers may begin. Jobs whose length depends on when they start are otherwise
those of resource-constrained project scheduling [kolisch96].

Two list schedules are known for nothing. One is that in which nothing streams: where operators are cut into about as
many equal tasks as there are elements, a stream from one task to the next gains next to nothing, and keeps an element
for as long as its producer runs. The other is that of a chain, tasks in a row that take the processing elements in
turn, which no schedule beats. When a task of it starts, all tasks before it have started, and at most P - 1 of them
are still on the machine. They end in the order of the chain, so the one P places before it has ended. In turn each
task starts as soon as that and its first element allow; and nobody gains by a later end of another.
"""

from __future__ import annotations

from functools import cached_property
from heapq import heappop, heappush, heapreplace

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import topological_order
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.options import Timing
from dfcompile.scheduler.bounds.precedence import Direction, direction, earliest, released, stream_delays
from dfcompile.scheduler.fifo import whole_streams
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule, Schedule

FREE = -1  # nobody ran before on the processing element


class ListSchedule(Struct, frozen=True):
    """Who runs where, and in which order; times as far as they are known without looking at single elements.

    Attributes:
        sequence: all nodes; on every processing element, and along every edge, they come in this order.
        before: of each task the one before it on its processing element, or ``FREE``, shape [nodes].
        start: of each node, shape [nodes].
        end: of each node, shape [nodes].
        cycles: when the last node ends.
    """

    sequence: list[int]
    before: list[int]
    start: list[int]
    end: list[int]
    cycles: int

    def elements(self, is_task: list[bool]) -> Int32:
        """Return the processing element of each task, ``NO_PE`` for other nodes, shape [nodes]."""
        pe, used = [NO_PE] * len(is_task), 0
        for node in self.sequence:
            if is_task[node]:
                before = self.before[node]
                pe[node] = used if before == FREE else pe[before]
                used += before == FREE
        return np.array(pe, dtype=np.int32)


class Rule(Struct, frozen=True):
    """How tasks are placed, shape [nodes] each.

    Attributes:
        urgency: of the tasks that could begin the one with the smallest number does.
        latest: a task keeps an element before its producers let it go on only from this cycle on.
        release: no task begins before, though it could.
    """

    urgency: list[int]
    latest: list[int]
    release: list[int]

    @classmethod
    def at_once(cls, urgency: list[int], latest: list[int]) -> Rule:
        """Return the rule by which no task waits that could begin."""
        return cls(urgency, latest, [0] * len(urgency))


class ListScheduler:
    """Places tasks one by one, forwards or backwards in time."""

    def __init__(
        self, dag: CanonicalDag, pes: int, streamed: Bool | None = None, hardware: Hardware = LITERATURE
    ) -> None:
        """Take in a graph.

        Args:
            dag: the graph.
            pes: number of processing elements P.
            streamed: which edges stream; by default all between two tasks, shape [edges].
            hardware: what FIFOs and tasks take.
        """
        self._pes = max(min(pes, dag.tasks_count), 1)
        self._task, self._work = dag.is_computational.tolist(), hardware.cycles(dag).tolist()
        self._graph = dag, streamed, hardware.forward(dag)

    @cached_property
    def ahead(self) -> Direction:
        """What nodes wait for forwards in time."""
        return direction(*self._graph)

    @cached_property
    def back(self) -> Direction:
        """What nodes wait for backwards in time."""
        return direction(*self._graph, backwards=True)

    @cached_property
    def _followers(self) -> tuple[list[list[int]], list[list[int]]]:
        """The nodes that wait for each node, forwards and backwards in time."""
        ahead, back = ([[other for other, _, _ in row] for row in one.awaited] for one in (self.back, self.ahead))
        return ahead, back

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self._task)

    def left(self) -> list[int]:
        """Return the cycles from the start of each node to the end of any schedule, at least, shape [nodes]."""
        return earliest(self.back, self._task, self._work)[1]

    def forwards(self, rule: Rule) -> ListSchedule:
        """Place tasks forwards in time, then let each begin as soon as it can where it is."""
        found = _Placing(self.ahead, self._followers[0], self._pes, (self._task, self._work)).run(rule)
        return self.settled(*found)

    def backwards(self, rule: Rule) -> tuple[ListSchedule, list[int]]:
        """Place tasks backwards in time, then let each begin as soon as it can where it is.

        Returns:
            The schedule, and the start of each node when all were as late as the end allows, shape [nodes].
        """
        placing = _Placing(self.back, self._followers[1], self._pes, (self._task, self._work))
        turned, after = placing.run(rule)
        before = [FREE] * self.nodes
        for node, other in enumerate(after):
            if other != FREE:
                before[other] = node
        cycles = max(placing.end, default=0)
        return self.settled(turned[::-1], before), [cycles - end for end in placing.end]

    def of_times(self, start: list[int], end: list[int]) -> ListSchedule:
        """Return the assignment of a schedule of which only times are known; at no time more than P tasks run.

        Args:
            start: of each node, shape [nodes].
            end: of each node, shape [nodes].
        """
        sequence = sorted(self.ahead.order, key=start.__getitem__)  # of equal starts in the order of the graph
        before = [FREE] * self.nodes
        free = [(0, FREE - number) for number in range(self._pes, 0, -1)]
        for node in sequence:
            if self._task[node]:
                before[node] = max(free[0][1], FREE)
                heapreplace(free, (end[node], node))
        return self.settled(sequence, before)

    def settled(self, sequence: list[int], before: list[int]) -> ListSchedule:
        """Return the earliest times of an assignment, as far as they are known without looking at single elements."""
        start, end = [0] * self.nodes, [0] * self.nodes
        task, work, awaited = self._task, self._work, self.ahead.awaited
        for node in sequence:
            known = end[before[node]] if before[node] != FREE else 0
            start[node], least = released(awaited[node], start, end, (known, 0))
            end[node] = max(start[node] + work[node], least) if task[node] else start[node]
        return ListSchedule(sequence, before, start, end, max(end, default=0))


class _Placing:
    """Tasks placed so far in one direction of time, and those that wait."""

    def __init__(
        self, direction: Direction, followers: list[list[int]], pes: int, nodes: tuple[list[bool], list[int]]
    ) -> None:
        self._awaited, self._followers, self._pes = direction.awaited, followers, pes
        self._task, self._work = nodes
        self._start, self.end, self._least = ([0] * len(followers) for _ in range(3))
        self._missing = [len(row) for row in direction.awaited]
        self._sequence: list[int] = []
        # What is compared is one number: a time and, between equal times, the rank of a node by its urgency.
        self._waiting: list[int] = []
        self._pool: list[int] = []  # ranks of those whose time has come
        self._rank = [0] * len(followers)

    def run(self, rule: Rule) -> tuple[list[int], list[int]]:
        """Place all; return the sequence, and of each task the one before it on its processing element.

        The clock stands where the next processing element gets free. Of the tasks that can begin, or that would keep
        their element for no longer than their work by now, the most urgent is placed.
        """
        nodes = len(self._task)
        by_urgency = sorted(range(nodes), key=rule.urgency.__getitem__)
        for rank, node in enumerate(by_urgency):
            self._rank[node] = rank
        before, waiting, pool = [FREE] * nodes, self._waiting, self._pool
        # Of a processing element when it gets free, and the last task on it; those that nobody has used differ.
        pes = self._pes
        width = nodes + pes
        free = list(range(pes))
        work, least, start, end = self._work, self._least, self._start, self.end
        self._admit([node for node, missing in enumerate(self._missing) if not missing], rule, 0)
        while waiting or pool:
            now, last_task = divmod(free[0], width)
            if not pool:
                first = waiting[0] // nodes
                if first > now:
                    now = first
            due = (now + 1) * nodes
            while waiting and waiting[0] < due:
                heappush(pool, heappop(waiting) % nodes)
            node = by_urgency[heappop(pool)]
            last = now + work[node]
            if least[node] > last:
                last = least[node]
            start[node], end[node] = now, last
            if last_task >= pes:
                before[node] = last_task - pes
            heapreplace(free, last * width + pes + node)
            ready = self._ready_after(node)
            if ready:
                self._admit(ready, rule, free[0] // width)
        return self._sequence, before

    def _ready_after(self, node: int) -> list[int]:
        """Note that a node has been placed; return those that wait for nothing more."""
        self._sequence.append(node)
        missing, ready = self._missing, []
        for follower in self._followers[node]:
            left = missing[follower] = missing[follower] - 1
            if not left:
                ready.append(follower)
        return ready

    def _admit(self, nodes: list[int], rule: Rule, now: int) -> None:
        """Let nodes wait for an element whose producers have all been placed; what needs none is placed at once.

        Args:
            nodes: these.
            rule: how tasks are placed.
            now: the cycle in which the next element gets free: what can begin by then need not wait for its time.
        """
        start, end, task, rank, awaited = self._start, self.end, self._task, self._rank, self._awaited
        latest, release, count = rule.latest, rule.release, len(task)
        for node in nodes:  # grows while it is read
            begin, least = released(awaited[node], start, end)
            if not task[node]:
                start[node] = end[node] = begin
                nodes.extend(self._ready_after(node))
                continue
            self._least[node] = least
            wanted = least - self._work[node]
            if latest[node] < wanted:
                wanted = latest[node]
            if release[node] > wanted:
                wanted = release[node]
            if wanted > begin:
                begin = wanted
            if begin <= now:
                heappush(self._pool, rank[node])
            else:
                heappush(self._waiting, begin * count + rank[node])


def planned_schedule(
    dag: CanonicalDag,
    options: ScheduleOptions,
    order: tuple[list[int], Int32],
    times: tuple[Int64, Int64],
    streamed: Bool,
) -> Schedule:
    """Return a schedule without barriers, its FIFOs as deep as their streams are long; each node is a block of its own.

    Args:
        dag: the graph.
        options: P, and the name of the partitioner.
        order: all nodes, in which they come on every processing element and along every edge; and these elements.
        times: start and end of each node, shape [nodes] each.
        streamed: which edges stream, shape [edges].
    """
    sequence, pe = order
    start, end = times
    block = np.empty(dag.nodes_count, dtype=np.int32)
    block[sequence] = np.arange(dag.nodes_count)
    emits = dag.is_computational & (dag.volume_out > 0)
    first_out = np.where(emits, start + stream_delays(dag)[0] + options.hardware.pipeline(dag), end)
    columns = (block, pe, start, first_out, end, streamed, whole_streams(dag, streamed))
    for column in columns:
        column.setflags(write=False)
    makespan = int(end.max(initial=0))
    return Schedule(
        options.pes,
        options.partition,
        False,  # noqa: FBT003
        Timing.STEADY,
        *columns,
        makespan_cycles=makespan,
        hardware=options.hardware,
    )


_NEARLY = 200  # no other schedule is shorter by one part in so many; no gangs of nine large models were
_MANY = 2**17  # nodes: of more, gangs take half of the time
_NEARLY_OF_MANY = 10  # of tasks so many and so well shared, no gangs of ten models were shorter


def through_memory(dag: CanonicalDag, options: ScheduleOptions, found: NonStreamingSchedule) -> Schedule:
    """Return a non-streaming schedule as one without FIFOs; each node is a block of its own.

    Args:
        dag: the graph.
        options: P, and the name of the partitioner.
        found: its non-streaming schedule.
    """
    place = np.empty(dag.nodes_count, dtype=np.int64)
    place[topological_order(dag)] = np.arange(dag.nodes_count)
    order = np.lexsort((place, found.start)).tolist(), found.pe
    return planned_schedule(dag, options, order, (found.start, found.end), np.zeros(dag.edges_count, dtype=np.bool_))


def is_nearly_shortest(dag: CanonicalDag, pes: int, cycles: int) -> bool:
    """Return whether a makespan is hardly longer than all work shared by P; of many tasks, whether not far longer.

    >>> from dfcompile.generators.canonical_dags import chain
    >>> dag = chain(3, 64, 1)
    >>> work = sum(dag.work.tolist())
    >>> is_nearly_shortest(dag, 1, work), is_nearly_shortest(dag, 2, work)
    (True, False)
    """
    shared = -(-sum(dag.work.tolist()) // pes)
    return bool((cycles - shared) * (_NEARLY if dag.nodes_count <= _MANY else _NEARLY_OF_MANY) <= shared)


def is_chain(dag: CanonicalDag) -> bool:
    """Return whether the tasks of a graph are one after another, streaming or through memory between them.

    What is in memory from the beginning or to the end plays no part: nobody waits for it, or it waits for nobody.
    """
    written, read = np.zeros((2, dag.nodes_count), dtype=np.bool_)
    written[dag.edge_target], read[dag.edge_source] = True, True
    task = dag.is_computational
    # Edges that neither leave what is there from the beginning nor enter what nobody reads.
    inner = (task | written)[dag.edge_source] & (task | read)[dag.edge_target]
    ends = dag.edge_source[inner], dag.edge_target[inner]
    degrees = [np.bincount(end, minlength=dag.nodes_count) for end in ends]
    is_inner = task | (degrees[0] + degrees[1] > 0)
    return (
        dag.tasks_count > 0
        and int(inner.sum()) == int(is_inner.sum()) - 1
        and all(int(degree.max(initial=0)) <= 1 for degree in degrees)
    )


def in_turn(dag: CanonicalDag, pes: int, streamed: Bool, hardware: Hardware = LITERATURE) -> ListSchedule:
    """Return the schedule of a chain whose tasks take the elements in turn.

    Its times are the earliest, as far as they are known without looking at single elements.

    Args:
        dag: a chain.
        pes: number of processing elements P.
        streamed: which edges stream, shape [edges].
        hardware: what FIFOs and tasks take.
    """
    sequence, task = topological_order(dag), dag.is_computational
    row = sequence[task[sequence]]
    before = np.full(dag.nodes_count, FREE, dtype=np.int64)
    before[row[pes:]] = row[:-pes]
    return ListScheduler(dag, pes, streamed, hardware).settled(sequence.tolist(), before.tolist())

"""The best of many partitions: optimal cuts of several orders; without barriers gangs grown along streams, on tiers."""

import random
from collections.abc import Iterable
from functools import partial

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.options import Effort
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.fifo import RELAY_ELEMENTS
from dfcompile.scheduler.gangs import gang_sequence, gangs_of, place, place_shortest
from dfcompile.scheduler.partitioner import partitioner
from dfcompile.scheduler.partitioners.block_clock import BlockClock, root_of
from dfcompile.scheduler.partitioners.spatial import sb_lts, sb_rlx, work_ordered
from dfcompile.scheduler.timing import steady_times, streamable_edges

_WASTES = (500, 0, 100, 250, 1000, 2000, None)
_TEMPERATURE = 0.02  # of the makespan: how much longer a changed schedule may be at first and still be kept
_SEED = 20230616


class OverlapSearch:
    """Finds gangs whose schedule without barriers is short; tries at most a given number of partitions."""

    def __init__(self, dag: CanonicalDag, pes: int, tries: int) -> None:
        self._dag, self._pes, self._tries = dag, pes, tries
        self._grower = TierGrower(dag)
        self._bound = lower_bound_cycles(dag, pes, each_element=False)
        self._shortest: int | None = None
        self.found: Blocks | None = None

    def offer(self, blocks: Blocks) -> None:
        """Place a partition in all ways; keep it if it is the shortest so far."""
        self._tries -= 1
        gangs = gangs_of(self._dag, blocks, streamable_edges(self._dag, blocks.block), RELAY_ELEMENTS)
        sequence = gang_sequence(self._dag, gangs.gang, blocks.block)
        self._keep(blocks, place_shortest(self._dag, gangs, self._pes, sequence).makespan_cycles)

    def grow(self, orders: list[list[int]]) -> None:
        """Try gangs of several sizes and balances, grown in several orders."""
        for size in self._sizes():
            for waste in _WASTES:
                for order in orders:
                    if self._is_done():
                        return
                    self._tries -= 1
                    blocks = self._grower.blocks(order, self._grower.grow(order, size, waste))
                    cycles = self._cycles(blocks)
                    if cycles is not None:
                        self._keep(blocks, cycles)

    def improve(self) -> None:
        """Change the delays of one to three tasks at a time; keep what is shorter, or at first a little longer."""
        if self.found is None or self._shortest is None:
            return
        choice = random.Random(_SEED)  # noqa: S311 - a search, no secret
        order = self.found.order.tolist()
        tasks = [node for node in order if self._dag.is_computational[node]]
        delay = self._grower.delays(order, self.found.block.tolist())
        current, total = self._shortest, self._tries
        while tasks and not self._is_done():
            changed = delay[:]
            for _ in range(choice.choice((1, 1, 2, 3))):
                task = choice.choice(tasks)
                changed[task] = choice.choice((0, 1, 2)) if delay[task] else choice.choice((1, 1, 2))
            self._tries -= 1
            tier = self._grower.tiers(order, changed, self._pes)
            cycles = self._cycles(Blocks.in_order(tier, order))
            if cycles is None:
                continue
            if cycles <= current * (1 + _TEMPERATURE * self._tries / total * choice.random()):
                delay, current = changed, cycles
                if current < self._shortest:
                    self._keep(self._grower.blocks(order, tier), cycles)

    def _sizes(self) -> Iterable[int]:
        size = min(self._pes, max(self._dag.tasks_count, 1))
        while size > 1:
            yield size
            size = size * 2 // 3
        yield 1

    def _is_done(self) -> bool:
        return self._tries <= 0 or (self._shortest is not None and self._shortest <= self._bound)

    def _keep(self, blocks: Blocks, cycles: int) -> None:
        if self._shortest is None or cycles < self._shortest:
            self._shortest, self.found = cycles, blocks

    def _cycles(self, blocks: Blocks) -> int | None:
        """Return the makespan of a partition; ``None`` if a gang needs more elements than there are."""
        gangs = gangs_of(self._dag, blocks, streamable_edges(self._dag, blocks.block), RELAY_ELEMENTS)
        if gangs.largest(self._dag) > self._pes:
            return None
        return place(self._dag, gangs, self._pes).makespan_cycles


class TierGrower:
    """Gives the nodes tiers: numbers that never fall along an edge, and grow along edges that leave a gang.

    A gang is what streams together on one tier, so no circle of dependences joins gangs. The *delay* of a task is how
    many tiers it lies above the highest of its producers; with delay 0 it joins the gangs of its producers on
    that tier, which become one.
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self._work, self._task = dag.work.tolist(), dag.is_computational.tolist()
        self._parents = dag.producers()

    def grow(self, order: list[int], size: int, waste: int | None) -> list[int]:
        """Return tiers: nodes in a given order join where balance allows; memory ends a tier.

        Tasks of a gang run at the pace of its largest volume, so those of equal volumes lose nothing.

        Args:
            order: of the nodes.
            size: tasks of a gang, at most.
            waste: processing element cycles that joining may cost, in thousandths of the work of what is joined: tasks
                of a gang last as long as its largest one. ``None`` is without limit.
        """
        tier = [0] * len(order)
        gangs = _Joined(self._work)
        for node in order:
            parents = self._parents[node]
            highest = max((tier[parent] for parent in parents), default=0)
            on_top = [parent for parent in parents if tier[parent] == highest]
            tier[node] = highest
            if self._task[node] and not (
                parents and all(self._task[parent] for parent in on_top) and gangs.join(node, on_top, size, waste)
            ):
                tier[node] = highest + 1
        return tier

    def delays(self, order: list[int], tier: list[int]) -> list[int]:
        """Return the delay of every task that gives tiers of an order again; 0 for other nodes."""
        delay, found = [0] * len(order), [0] * len(order)
        for node in order:
            highest = max((found[parent] for parent in self._parents[node]), default=0)
            found[node] = max(tier[node], highest) if self._task[node] else highest
            delay[node] = found[node] - highest
        return delay

    def tiers(self, order: list[int], delay: list[int], size: int) -> list[int]:
        """Return the tiers that delays give; a task that would make a gang of more than ``size`` goes one higher."""
        tier = [0] * len(order)
        gangs = _Joined(self._work)
        for node in order:
            parents = self._parents[node]
            highest = max((tier[parent] for parent in parents), default=0)
            tier[node] = highest + delay[node]
            if self._task[node] and not delay[node]:
                on_top = [parent for parent in parents if tier[parent] == highest and self._task[parent]]
                if not gangs.join(node, on_top, size, None):
                    tier[node] = highest + 1
        return tier

    def blocks(self, order: list[int], tier: list[int]) -> Blocks:
        """Return tiers as blocks; a block may have more tasks than the machine, a gang has not."""
        by_tier = np.argsort(np.array([tier[node] for node in order], dtype=np.int64), kind="stable")
        return Blocks.in_order(tier, np.array(order, dtype=np.int64)[by_tier].tolist())


class _Joined:
    """Gangs so far, as trees over their tasks."""

    def __init__(self, work: list[int]) -> None:
        self._root = list(range(len(work)))
        self._size = [1] * len(work)
        self._work, self._peak = work, work[:]

    def join(self, node: int, others: list[int], size: int, waste: int | None) -> bool:
        """Join a node and the gangs of other tasks unless they get too large or cost too much."""
        gangs = sorted({root_of(self._root, other) for other in others})
        tasks = 1 + sum(self._size[gang] for gang in gangs)
        if tasks > size:
            return False
        peak = max([self._work[node], *(self._peak[gang] for gang in gangs)])
        if waste is not None:
            before = self._work[node] + sum(self._size[gang] * self._peak[gang] for gang in gangs)
            if (tasks * peak - before) * 1000 > waste * before:
                return False
        for gang in gangs:
            self._root[gang] = node
        self._size[node], self._peak[node] = tasks, peak
        return True


_NARROW = 4
_FEWEST_TRIES = 5
_MOST_TRIES = 1_500


class _Budget(Struct, frozen=True):
    """How much is tried.

    Attributes:
        node_evaluations: per order, to find its cuts: of blocks, summed over their nodes.
        node_visits: of the search for gangs: tries times nodes.
        improves: whether the best gangs are changed at random at the end.
    """

    node_evaluations: int
    node_visits: int
    improves: bool


_DEFAULT = _Budget(10_000, 24_000, improves=False)
_HIGH = _Budget(500_000, 400_000, improves=True)


def _overlapping(dag: CanonicalDag, pes: int, budget: _Budget = _DEFAULT) -> Blocks:
    """Return the gangs whose schedule without barriers is the shortest found.

    Tried are: the blocks of SB-LTS, SB-RLX, work-ordered and `best` with barriers; gangs grown in the orders of these
    up to several sizes, where volumes match within several limits. The effort is limited: well below a second up to
    1,000 tasks, then a few placings of the whole graph; or ten times as much, and changes at random (with a fixed seed)
    of the best of all.
    """
    tries = min(max(budget.node_visits // max(dag.nodes_count, 1), _FEWEST_TRIES), _MOST_TRIES)
    search = OverlapSearch(dag, pes, tries)
    plain = [each.partition(dag, pes) for each in (sb_lts, sb_rlx, work_ordered)]
    for blocks in [_with_barriers(dag, pes, budget), *plain]:
        search.offer(blocks)
    search.grow([sb_lts.partition(dag, 1).order.tolist(), *(blocks.order.tolist() for blocks in plain)])
    if budget.improves:
        search.improve()
    assert search.found is not None
    return search.found


def _with_barriers(dag: CanonicalDag, pes: int, budget: _Budget = _DEFAULT) -> Blocks:
    widths = dict.fromkeys((pes, 1, min(_NARROW, pes), max(pes // 2, 1), max(dag.tasks_count, 1)))
    plain = [sb_lts.partition(dag, pes), sb_rlx.partition(dag, pes), work_ordered.partition(dag, pes)]
    orders = [sb_lts.partition(dag, width).order.tolist() for width in widths]
    orders.append(plain[-1].order.tolist())
    clock, step = BlockClock(dag), _step(dag.tasks_count, pes, budget.node_evaluations)
    found = [*plain, *(_cut(dag, clock, order, (pes, step)) for order in orders)]
    return min(found, key=lambda blocks: steady_times(dag, blocks, streamable_edges(dag, blocks.block)).makespan_cycles)


@partitioner(
    "best",
    source="dematteis23",
    overlapping=_overlapping,
    other_efforts=(
        (Effort.QUICK, sb_rlx.partition, sb_rlx.partition),
        (Effort.HIGH, partial(_with_barriers, budget=_HIGH), partial(_overlapping, budget=_HIGH)),
    ),
    rivals=(sb_lts, sb_rlx, work_ordered),
    lists=True,
)
def best(dag: CanonicalDag, pes: int) -> Blocks:
    """Cut the orders of the other partitioners anew, each optimally, and take the shortest schedule.

    A partition is an order of the nodes and a set of cuts. The order in which SB-LTS places nodes, for this and for
    narrower and wider machines, keeps together what should stream at one pace; but it closes a block when the block
    is full or the next node is slower, not when the whole schedule gains. Given the order, a block is a stretch of
    it, its time depends on its nodes alone, and the cuts of least total time are a shortest path.

    Times and orders are those of [dematteis23, section 5]; cutting an order optimally is not in it.

    On graphs too large to try every cut, cuts are tried at every so many tasks. The result is never longer than that
    of SB-LTS, SB-RLX or work-ordered blocks. Among equals the first found is taken.
    """
    return _with_barriers(dag, pes)


def _cut(dag: CanonicalDag, clock: BlockClock, order: list[int], size: tuple[int, int]) -> Blocks:
    """Return the cuts of an order, at every so many tasks, into blocks of at most P whose times have the least sum.

    Args:
        dag: the graph.
        clock: of its blocks.
        order: of its nodes.
        size: P, and after how many tasks a cut is tried.
    """
    pes, step = size
    chunks = _chunks(dag, order, step)
    least, cut_before, stored_after = [0], [0], [0]
    task = dag.is_computational.tolist()
    for end in range(1, len(chunks) + 1):
        choices = []
        nodes: list[int] = []
        for begin in range(end - 1, max(end - pes // step, 0) - 1, -1):
            nodes = chunks[begin] + nodes
            choices.append((least[begin] + clock.cycles(nodes), begin, 0))
            stored = _stored_last(nodes, task)
            if stored:  # a write to memory keeps the pace of its block only if that memory is of the same block
                choices.append((least[begin] + clock.cycles(nodes[:-stored]), begin, stored))
        shortest, begin, stored = min(choices)
        least.append(shortest)
        cut_before.append(begin)
        stored_after.append(stored)
    block = [0] * dag.nodes_count
    end = len(chunks)
    number = end
    while end:
        nodes = [node for chunk in chunks[cut_before[end] : end] for node in chunk]
        for at, node in enumerate(nodes):
            block[node] = number + (at >= len(nodes) - stored_after[end])
        number, end = number - 1, cut_before[end]
    return Blocks.in_order(block, order)


def _stored_last(nodes: list[int], task: list[bool]) -> int:
    """Return how many nodes at the end are no tasks, where there are tasks before them."""
    stored = 0
    while stored < len(nodes) and not task[nodes[-1 - stored]]:
        stored += 1
    return stored if stored < len(nodes) else 0


def _step(tasks: int, pes: int, evaluations: int) -> int:
    """Return the smallest divisor of P for which evaluating ``tasks * (width / step)^2 / 2`` nodes is affordable.

    Where all tasks fit in one block it need not divide P.
    """
    width = min(pes, tasks)
    for step in range(1, width):
        fits = pes > tasks or pes % step == 0
        if fits and tasks * (width // step) ** 2 <= 2 * evaluations:
            return step
    return max(width, 1)


def _chunks(dag: CanonicalDag, order: list[int], step: int) -> list[list[int]]:
    """Split an order into chunks of ``step`` tasks; buffers stay with the task before them."""
    task = dag.is_computational.tolist()
    chunks: list[list[int]] = [[]]
    held = 0
    for node in order:
        if task[node] and held == step:
            chunks.append([])
            held = 0
        held += task[node]
        chunks[-1].append(node)
    return chunks

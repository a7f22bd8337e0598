"""The best of many partitions: optimal cuts of several orders."""

from functools import partial

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.options import Effort
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.partitioner import partitioner
from dfcompile.scheduler.partitioners.block_clock import BlockClock
from dfcompile.scheduler.partitioners.overlap_search import OverlapSearch
from dfcompile.scheduler.partitioners.spatial import sb_lts, sb_rlx, work_ordered
from dfcompile.scheduler.timing import steady_times, streamable_edges

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
        for place, node in enumerate(nodes):
            block[node] = number + (place >= len(nodes) - stored_after[end])
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

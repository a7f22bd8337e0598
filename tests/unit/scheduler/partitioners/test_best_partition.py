"""The search for a better partition: exact costs, never worse, optimal on chains."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.scheduler import ScheduleOptions, Timing, check, schedule
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.partitioners.best import best
from dfcompile.scheduler.partitioners.block_clock import BlockClock
from dfcompile.scheduler.timing import steady_times, streamable_edges
from tests.examples import examples
from tests.strategies import canonical_dags

PLAIN = ("sb-lts", "sb-rlx", "work-ordered")


@examples(60)
@given(canonical_dags(), st.integers(1, 6), st.sampled_from(PLAIN))
def test_block_times_add_up_to_the_makespan(dag: CanonicalDag, pes: int, partition: str) -> None:
    result = schedule(dag, ScheduleOptions(pes, partition, timing=Timing.STEADY))
    order = Blocks.of(dag, result.block.tolist()).order.tolist()
    clock = BlockClock(dag)

    total = sum(
        clock.cycles([node for node in order if result.block[node] == block])
        for block in range(int(result.block.max()) + 1)
    )

    assert total == result.makespan_cycles


@examples(40)
@given(canonical_dags(), st.integers(1, 6))
def test_best_is_accepted_and_never_longer(dag: CanonicalDag, pes: int) -> None:
    result = schedule(dag, ScheduleOptions(pes, "best", barrier=True))

    check(dag, result)
    others = [schedule(dag, ScheduleOptions(pes, partition)).makespan_cycles for partition in PLAIN]
    assert result.makespan_cycles <= min(others)


@examples(5)
@given(canonical_dags(), st.integers(1, 6))
def test_best_overlaps_by_itself_and_gains_by_it(dag: CanonicalDag, pes: int) -> None:
    result = schedule(dag, ScheduleOptions(pes, "best"))

    check(dag, result)
    assert not result.barrier
    others = [schedule(dag, ScheduleOptions(pes, partition, barrier=False)) for partition in (*PLAIN, "best")]
    with_barriers = schedule(dag, ScheduleOptions(pes, "best", barrier=True))
    assert result.makespan_cycles <= min(other.makespan_cycles for other in [*others, with_barriers])


@examples(30)
@given(st.lists(st.integers(1, 30), min_size=3, max_size=8), st.integers(1, 4))
def test_best_is_optimal_on_a_chain(volumes: list[int], pes: int) -> None:
    builder = DagBuilder("chain")
    tasks = builder.add_tasks(builder.add_scope("step"), len(volumes) - 1)
    ends = [builder.add_memory(builder.add_scope(name)) for name in ("in", "out")]
    for (left, right), volume in zip(pairwise([ends[0], *tasks, ends[1]]), volumes, strict=True):
        builder.add_edge(left, right, volume)
    dag = builder.finish()

    def length(block: list[int]) -> int:
        """Of the chain; a write to memory of a later block need not keep the pace."""
        last = max(block)
        blocks = [Blocks.of(dag, [*block, 0, stored]) for stored in (last, last + 1)]
        return min(steady_times(dag, each, streamable_edges(dag, each.block)).makespan_cycles for each in blocks)

    lengths = []
    for count in range(len(tasks)):
        for cuts in combinations(range(1, len(tasks)), count):
            block = [sum(cut <= position for cut in cuts) for position in range(len(tasks))]
            if max(block.count(number) for number in block) <= pes:
                lengths.append(length(block))

    assert length(best.partition(dag, pes).block[: len(tasks)].tolist()) == min(lengths)

"""The optimal partition: below all others, and what trying all partitions finds."""

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain
from dfcompile.options import Timing
from dfcompile.scheduler import ScheduleOptions, check, lower_bound_cycles, schedule
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.partitioners.exact import MOST_TASKS, exact
from dfcompile.scheduler.timing import steady_times, streamable_edges
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags

SMALL = DagShape(max_scopes=5)


def _makespan(dag: CanonicalDag, blocks: Blocks) -> int:
    return steady_times(dag, blocks, streamable_edges(dag, blocks.block)).makespan_cycles


@examples(40)
@given(canonical_dags(SMALL), st.integers(1, 5))
def test_no_other_partition_is_shorter(dag: CanonicalDag, pes: int) -> None:
    """By steady times, of which it is the optimum: a replay of another one may take a cycle less."""
    assume(dag.tasks_count <= MOST_TASKS)
    replayed = schedule(dag, ScheduleOptions(pes, "exact"))
    optimum = schedule(dag, ScheduleOptions(pes, "exact", timing=Timing.STEADY))

    check(dag, replayed)
    assert optimum.barrier
    assert replayed.makespan_cycles >= lower_bound_cycles(dag, pes)
    for partition in ("sb-lts", "sb-rlx", "work-ordered", "best"):
        found = schedule(dag, ScheduleOptions(pes, partition, barrier=True, timing=Timing.STEADY))
        assert optimum.makespan_cycles <= found.makespan_cycles


@examples(40)
@given(canonical_dags(DagShape(max_scopes=4, max_members=2, pseudo=False)), st.integers(1, 4))
def test_optimum_is_that_of_all_partitions(dag: CanonicalDag, pes: int) -> None:
    assume(dag.nodes_count <= 5 and dag.tasks_count > 0)
    makespans = []
    for block in product(range(dag.tasks_count), repeat=dag.nodes_count):
        full = any(
            sum(number == other and task for other, task in zip(block, dag.is_computational, strict=True)) > pes
            for number in block
        )
        if not full and all(block[s] <= block[t] for s, t in zip(dag.edge_source, dag.edge_target, strict=True)):
            makespans.append(_makespan(dag, Blocks.of(dag, list(block))))

    assert _makespan(dag, exact.partition(dag, pes)) == min(makespans)


def test_memory_that_is_read_later_is_of_a_later_block() -> None:
    """In the block of its writer it would have that write at the pace of the block: 34 cycles instead of 30."""
    builder = DagBuilder("later")
    first, second, third = (builder.add_task(builder.add_scope(name), 0) for name in "abc")
    kept = builder.add_memory(builder.add_scope("kept"))
    builder.add_edge(builder.add_memory(builder.add_scope("in")), first, 22)
    builder.add_edge(first, second, 2)
    builder.add_edge(second, kept, 18)
    builder.add_edge(kept, third, 1)
    builder.add_edge(third, builder.add_memory(builder.add_scope("out")), 1)
    dag = builder.finish()

    assert _makespan(dag, exact.partition(dag, 2)) == 30
    assert schedule(dag, ScheduleOptions(2, "best", barrier=True, timing=Timing.STEADY)).makespan_cycles == 30


def test_larger_graphs_are_refused() -> None:
    with pytest.raises(UserError, match=r"partition 'exact': found 13 tasks, expected at most 12 \(use 'best'\)"):
        schedule(chain(13), ScheduleOptions(4, "exact"))

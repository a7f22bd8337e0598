"""Schedules in which nothing streams: against the same rules, over all places there are, and cycle by cycle."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, topological_order
from dfcompile.scheduler import schedule_non_streaming
from dfcompile.scheduler.depth_first import schedule_depth_first
from dfcompile.scheduler.schedules import NO_PE
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.test_postponed import depends_on_input, replayed_cycles


def by_rank(dag: CanonicalDag) -> list[int]:
    order = topological_order(dag).tolist()
    rank = dag.work.tolist()
    for node in reversed(order):
        after = (
            rank[target] for source, target in zip(dag.edge_source, dag.edge_target, strict=True) if source == node
        )
        rank[node] += max(after, default=0)
    return sorted(order, key=lambda node: -rank[node])


def depth_first(dag: CanonicalDag) -> list[int]:
    """Each node behind all that it needs, and these when it is looked at: said once more, by calls of itself."""
    found: list[int] = []

    def look_at(node: int) -> None:
        for source, target in zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True):
            if target == node and source not in found:
                look_at(source)
        found.append(node)

    for node in range(dag.nodes_count):
        if node not in dag.edge_source:
            look_at(node)
    return found


def earliest_place(booked: Sequence[list[tuple[int, int]]], ready: int, work: int) -> tuple[int, int]:
    """Return the start and the element: gaps before ends, those that opened first; then ends, the latest first."""
    places = []
    for pe, intervals in enumerate(booked):
        end = max((stop for _, stop in intervals), default=0)
        begins = sorted(begin for begin, _ in intervals)
        ends = [0, *sorted(stop for _, stop in intervals)]
        gaps = (gap for gap in zip(ends, begins, strict=False) if max(gap[0], ready) + work <= gap[1])
        places += [(max(begin, ready), False, False, begin, stop, pe) for begin, stop in gaps]
        places.append((max(end, ready), True, not intervals, -end, 0, pe))
    begin, *_, pe = min(places)
    return begin, pe


@examples(150)
@given(canonical_dags(DagShape(max_scopes=8, max_members=8, max_volume=12)), st.integers(1, 6))
def test_each_task_is_where_it_ends_first(dag: CanonicalDag, pes: int) -> None:
    found = schedule_non_streaming(dag, pes)

    booked: list[list[tuple[int, int]]] = [[] for _ in range(min(pes, max(dag.tasks_count, 1)))]
    end = [0] * dag.nodes_count
    for node in by_rank(dag):
        sources = dag.edge_source[dag.edge_target == node].tolist()
        begin, work, pe = max((end[each] for each in sources), default=0), int(dag.work[node]), NO_PE
        if dag.is_computational[node]:
            begin, pe = earliest_place(booked, begin, work)
            booked[pe].append((begin, begin + work))
        end[node] = begin + work
        assert (found.start[node], found.end[node], found.pe[node]) == (begin, end[node], pe)
    assert found.makespan_cycles == max(end, default=0)


def due(dag: CanonicalDag, pes: int, order: Sequence[int]) -> dict[int, int]:
    """Of each task that depends on no input, where others do, the work of these after which it may begin."""
    by_input = depends_on_input(dag)
    held = [node for node in order if dag.is_computational[node] and not by_input[node]]
    if len(held) == dag.tasks_count:
        return {}
    lead = dict.fromkeys(range(dag.nodes_count), 0)
    for node in reversed(order):
        after = dag.edge_target[dag.edge_source == node].tolist()
        lead[node] = max([lead[other] for other in after], default=0) + (int(dag.work[node]) if node in held else 0)
    found, before = {}, 0
    for node in order:
        if node in held:
            found[node] = before - 2 * pes * lead[node]
        else:
            before += int(dag.work[node]) if dag.is_computational[node] else 0
    return found


@examples(150)
@given(canonical_dags(DagShape(max_scopes=8, max_members=8, max_volume=12)), st.integers(1, 6))
def test_depth_first_an_element_takes_the_first_task_that_can_begin(dag: CanonicalDag, pes: int) -> None:
    """Cycle by cycle: as many tasks run as can, and of those that can begin the first depth first.

    What depends on no input waits until it is due, one after the other, unless the end would come later.
    """
    found = schedule_depth_first(dag, pes)

    order, start, end = depth_first(dag), [-1] * dag.nodes_count, [-1] * dag.nodes_count
    sources = {node: dag.edge_source[dag.edge_target == node].tolist() for node in order}
    held, begun_work, now = due(dag, pes, order), 0, 0
    while min(end) < 0 or max(end) > now:
        while True:  # what takes no time lets others begin in the same cycle
            can_begin = [
                node for node in order if start[node] < 0 and all(0 <= end[each] <= now for each in sources[node])
            ]
            running = sum(start[node] >= 0 and end[node] > now for node in order if dag.is_computational[node])
            tasks = [node for node in can_begin if dag.is_computational[node]]
            memory = [node for node in can_begin if node not in tasks]
            early = next(
                (node for node in tasks if held.get(node, 0) > begun_work), None
            )  # no other one comes before it
            some = [
                node for node in tasks if node not in held or early is None or order.index(node) < order.index(early)
            ]
            some = some if running < pes else []
            begun = memory or some[:1]
            if not begun:
                break
            for node in begun:
                start[node], end[node] = now, now + int(dag.work[node])
                begun_work += int(dag.work[node]) if node in tasks and node not in held else 0
        now += 1

    assert (found.end == found.start + np.where(dag.is_computational, dag.work, 0)).all()
    assert (found.start[dag.edge_target] >= found.end[dag.edge_source]).all()
    assert found.makespan_cycles == max([0, *found.end.tolist()]) == replayed_cycles(dag, found, pes)
    if found.makespan_cycles == max([0, *end]):
        assert (found.start.tolist(), found.end.tolist()) == (start, end)
    else:
        assert held
        assert found.makespan_cycles < max(end)
        assert all(found.start[node] <= start[node] for node in range(dag.nodes_count))
    for pe in range(pes):
        own = sorted((found.start[node], found.end[node]) for node in np.flatnonzero(found.pe == pe).tolist())
        assert all(before[1] <= after[0] for before, after in pairwise(own))


def test_depth_first_what_is_made_from_constants_is_made_a_little_before_it_is_needed() -> None:
    """Data takes 30 cycles, then ten results 20 on two elements, each from a filter that takes 2.

    There is time for all filters beside the data, but only those come then that are needed at once.
    """
    builder = DagBuilder("filters")
    given_, data = (builder.add_memory(builder.add_scope(name)) for name in ("x", "data"))
    first = builder.add_task(builder.add_scope("first"), 0)
    builder.add_edge(given_, first, 30)
    builder.add_edge(first, data, 30)
    filters, results = (builder.add_tasks(builder.add_scope(name), 10) for name in ("filters", "results"))
    made, ends = (builder.add_buffers(builder.add_scope(name), 10) for name in ("made", "y"))
    builder.add_edges(filters, made, [2] * 10)
    for number in range(10):
        builder.add_edge(data, results[number], 20)
        builder.add_edge(made[number], results[number], 20)
    builder.add_edges(results, ends, [1] * 10)
    dag = builder.finish()

    found = schedule_depth_first(dag, 2)

    assert found.start[list(filters)].tolist() == [0, 28, 50, 50, 72, 72, 94, 94, 116, 116]
    assert found.start[list(results)].tolist() == [30, 30, 52, 52, 74, 74, 96, 96, 118, 118]


def test_depth_first_one_result_comes_after_the_other() -> None:
    """Four batches of three steps through memory on one element: a batch is done before the next one begins."""
    builder = DagBuilder("batches")
    steps = [builder.add_tasks(builder.add_scope(f"step{number}"), 4) for number in range(3)]
    parts = [builder.add_buffers(builder.add_scope(f"between{number}"), 4) for number in range(2)]
    for number, ends in enumerate(parts):
        builder.add_edges(steps[number], ends, [5] * 4)
        builder.add_edges(ends, steps[number + 1], [5] * 4)
    dag = builder.finish()

    found = schedule_depth_first(dag, 1)

    assert found.start[list(zip(*steps, strict=True))].reshape(-1).tolist() == list(range(0, 60, 5))
    assert schedule_non_streaming(dag, 1).start[steps[0]].tolist() == [0, 5, 10, 15]


def test_tasks_of_a_scope_fill_gaps_before_new_rounds() -> None:
    """Five of 4 cycles on three elements, two of which wait until 10 for another task: one fits before each."""
    builder = DagBuilder("gaps")
    memory = builder.add_memory(builder.add_scope("in"))
    late = builder.add_memory(builder.add_scope("late"))
    long, wide, short = builder.add_scope("long"), builder.add_scope("wide"), builder.add_scope("short")
    first = builder.add_task(long, 0)
    builder.add_edge(memory, first, 10)
    builder.add_edge(first, late, 10)
    for number in range(3):
        task = builder.add_task(wide, number)
        builder.add_edge(late, task, 20)
        builder.add_edge(task, builder.add_memory(builder.add_scope(f"out{number}")), 1)
    for number in range(5):
        task = builder.add_task(short, number)
        builder.add_edge(memory, task, 4)
        builder.add_edge(task, builder.add_memory(builder.add_scope(f"end{number}")), 1)

    dag = builder.finish()
    found = schedule_non_streaming(dag, 3)
    starts = sorted(found.start[(dag.work == 4) & dag.is_computational].tolist())
    assert starts == [0, 0, 4, 4, 30]
    assert found.makespan_cycles == 34

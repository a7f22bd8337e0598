"""Tasks that depend on no input run late: those of borders and filters, while all others stay where they are."""

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.scheduler import ScheduleOptions, schedule_non_streaming
from dfcompile.scheduler.baseline import postponed
from dfcompile.scheduler.listing.list_schedule import through_memory
from dfcompile.scheduler.schedules import NonStreamingSchedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags


def depends_on_input(dag: CanonicalDag) -> list[bool]:
    """Whether something that is given, or made from it, leads to each node."""
    pairs = list(zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True))
    found = {node for node in range(dag.nodes_count) if not dag.is_computational[node]} - {end for _, end in pairs}
    grown = True
    while grown:
        after = found | {end for begin, end in pairs if begin in found}
        grown, found = after != found, after
    return [node in found for node in range(dag.nodes_count)]


def replayed_cycles(dag: CanonicalDag, found: NonStreamingSchedule, pes: int) -> int:
    """When the last task ends if each begins as soon as what it reads is there and the one before it has ended."""
    plan = through_memory(dag, ScheduleOptions(pes), found)
    return simulate(dag, replay_of(plan), details=False).makespan_cycles


def tasks_without_inputs(*volumes: int) -> CanonicalDag:
    builder = DagBuilder("constants")
    for number, volume in enumerate(volumes):
        task = builder.add_task(builder.add_scope(f"t{number}"), 0)
        builder.add_edge(task, builder.add_memory(builder.add_scope(f"m{number}")), volume)
    return builder.finish()


@example(tasks_without_inputs(2, 2, 4, 3, 3), 2)  # counted from the end they fit on the elements in another way
@examples(150)
@given(canonical_dags(DagShape(max_scopes=8, max_members=8, max_volume=12)), st.integers(1, 6))
def test_nothing_else_moves_and_nothing_is_delayed(dag: CanonicalDag, pes: int) -> None:
    before = schedule_non_streaming(dag, pes)
    after = postponed(dag, before)
    fixed = dag.is_computational & np.array(depends_on_input(dag))

    assert after.makespan_cycles == before.makespan_cycles == replayed_cycles(dag, after, pes)
    assert (after.start[fixed] == before.start[fixed]).all()
    assert (after.pe[fixed] == before.pe[fixed]).all()
    assert (after.end == after.start + np.where(dag.is_computational, dag.work, 0)).all()
    assert (after.start[dag.edge_target] >= after.end[dag.edge_source]).all()
    tasks = np.flatnonzero(dag.is_computational & (dag.work > 0))
    for pe in range(pes):
        own = sorted((after.start[task], after.end[task]) for task in tasks if after.pe[task] == pe)
        assert all(begin >= end for (_, end), (begin, _) in pairwise(own))
        assert all(begin >= 0 and end <= after.makespan_cycles for begin, end in own)


def test_what_is_made_from_nothing_waits_until_it_is_needed() -> None:
    """A border of 3 cycles beside data of 10 + 10: it ends when the first of the two readers begins, after 20."""
    builder = DagBuilder("border")
    given_, padded = (builder.add_memory(builder.add_scope(name)) for name in ("x", "padded"))
    first, second, border, reader = (builder.add_task(builder.add_scope(name), 0) for name in "abcd")
    between = builder.add_memory(builder.add_scope("between"))
    builder.add_edge(given_, first, 10)
    builder.add_edge(first, between, 10)
    builder.add_edge(between, second, 10)
    builder.add_edge(second, padded, 10)
    builder.add_edge(border, padded, 3)
    builder.add_edge(padded, reader, 13)
    builder.add_edge(reader, builder.add_memory(builder.add_scope("y")), 1)
    dag = builder.finish()
    before = schedule_non_streaming(dag, 2)
    after = postponed(dag, before)

    assert (before.start[border], after.start[border], after.start[reader]) == (0, 17, 20)

"""Figures of schedules, by hand."""

from fractions import Fraction

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind, parse_dag
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleFigures, ScheduleOptions, figures, schedule, schedule_non_streaming
from dfcompile.scheduler.checked_schedule import Scheduling

FIGURES = ScheduleFigures(
    pes=4,
    tasks=3,
    blocks=1,
    makespan_cycles=50,
    is_exact=True,
    non_streaming_makespan_cycles=90,
    lower_bound_cycles=40,
    total_work_cycles=100,
    io_elements=0,
    io_bytes=0,
    spilled_elements=0,
    fifo_elements=0,
)


def test_rates_follow_from_makespan_work_and_bound() -> None:
    assert FIGURES.speedup == Fraction(2)
    assert FIGURES.pe_utilization == Fraction(1, 2)
    assert FIGURES.gap == Fraction(1, 4)


def test_rates_of_nothing_are_those_of_an_optimum() -> None:
    nothing = replace(FIGURES, makespan_cycles=0, lower_bound_cycles=0, total_work_cycles=0)

    assert (nothing.speedup, nothing.gap) == (Fraction(1), Fraction(0))


def pipeline() -> CanonicalDag:
    """start -> IN (8-byte elements) -> a -> b -> OUT (2-byte elements) -> end, 10 elements, then 5."""
    builder = DagBuilder("pipeline")
    start, source, sink, end = (
        builder.add_memory(builder.add_scope(name), kind)
        for name, kind in (
            ("start", NodeKind.PSEUDO_SOURCE),
            ("IN", NodeKind.BUFFER),
            ("OUT", NodeKind.BUFFER),
            ("end", NodeKind.PSEUDO_SINK),
        )
    )
    a, b = (builder.add_task(builder.add_scope(name)) for name in "ab")
    builder.add_edge(start, source, 100)
    builder.add_edge(source, a, 10, element_bytes=8)
    builder.add_edge(a, b, 10, element_bytes=4)
    builder.add_edge(b, sink, 5, element_bytes=2)
    builder.add_edge(sink, end, 100)
    return builder.finish()


def test_what_is_spilled_is_what_tasks_hand_on_through_memory() -> None:
    dag = pipeline()
    baseline = schedule_non_streaming(dag, 2)
    together, apart = (schedule(dag, ScheduleOptions(pes)) for pes in (2, 1))

    assert figures(dag, together, baseline).spilled_elements == 0
    assert figures(dag, apart, baseline).spilled_elements == 10  # a -> b alone
    assert figures(dag, together, baseline).fifo_elements == 1
    assert figures(dag, apart, baseline).fifo_elements == 0


def test_io_is_what_passes_between_tasks_and_buffers() -> None:
    """Marks of begin and end move nothing."""
    dag = pipeline()
    found = figures(dag, schedule(dag, ScheduleOptions(2)), schedule_non_streaming(dag, 2))

    assert found.io_elements == 10 + 5
    assert found.io_bytes == 10 * 8 + 5 * 2


def test_figures_are_recomputed_from_the_columns() -> None:
    dag = pipeline()
    found, baseline = schedule(dag, ScheduleOptions(2)), schedule_non_streaming(dag, 2)
    wrong = replace(found, makespan_cycles=1)

    assert figures(dag, wrong, replace(baseline, makespan_cycles=1)).makespan_cycles == found.makespan_cycles
    assert figures(dag, wrong, baseline).non_streaming_makespan_cycles == baseline.makespan_cycles == 20
    assert figures(dag, replace(found, last_out=np.zeros_like(found.last_out)), baseline).makespan_cycles == 0


def test_bytes_to_and_from_memory_count_the_width_of_elements() -> None:
    text = "dfcompile-dag/1 x\nbuffer a\ntask t\nbuffer b\nedge a -> t volume=6 bytes=8\nedge t -> b volume=6 bytes=2\n"
    found = Scheduling(parse_dag(text)).on(ScheduleOptions(1)).figures

    assert (found.io_elements, found.io_bytes) == (12, 6 * 8 + 6 * 2)

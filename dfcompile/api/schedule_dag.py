"""From a canonical DAG to its schedules: what ``dfcompile schedule`` does."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from dfcompile.api.requests import Counts, Names, counts_of, one_of, partitions_of
from dfcompile.api.runs import Run, schedule_results
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.driver import show_nothing
from dfcompile.options import TIMINGS, parse_fifos
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler.checked_schedule import (
    SchedulingOptions,
    ShowStage,
    check_partition,
    read_dag_file,
    schedule_dag,
)


def schedule(
    dag: CanonicalDag | str | PathLike[str],
    *,
    pes: Counts,
    partition: Names = "sb-rlx",
    barrier: bool | None = None,
    timing: str = "steady",
    fifo: str | int = "rule",
    simulate: bool = False,
    show: ShowStage = show_nothing,
) -> Run:
    """Schedule a canonical DAG on numbers of processing elements.

    The options are those of ``dfcompile schedule``, as Python values or as its texts.

    Args:
        dag: the graph, or its file, as text or JSON.
        pes: numbers of processing elements, each gives results.
        partition: names of partitioners, which are compared.
        barrier: whether a spatial block waits for the one before; ``None``: as the partitioner has it.
        timing: ``steady`` or ``exact``.
        fifo: ``rule``, ``minimal`` or a number of elements.
        simulate: replay the schedules with their FIFOs.
        show: gives a context that lasts as long as a stage, for showing progress.

    Raises:
        UserError: the file cannot be read, or an option is none.
        InternalError: a bug of dfcompile.
    """
    counts, choices = (
        counts_of(pes),
        scheduling_choices(partitions_of(partition), barrier=barrier, timing=timing, fifo=fifo, simulate=simulate),
    )
    if isinstance(dag, CanonicalDag):
        graph = dag
    else:
        with show(f"reading {dag}"):
            graph = read_dag_file(Path(dag))
    return scheduled_run(graph, counts, choices, show)


def scheduling_choices(
    partitions: Sequence[str], *, barrier: bool | None, timing: str, fifo: str | int, simulate: bool
) -> list[SchedulingOptions]:
    """Return what is chosen for each partitioner to compare.

    Raises:
        UserError: there is no such partitioner or timing, or FIFOs are no such thing.
    """
    for name in partitions:
        check_partition(name)
    chosen, sizes = one_of("timing", timing, TIMINGS), parse_fifos(str(fifo))
    return [SchedulingOptions(name, chosen, barrier, sizes, simulate) for name in partitions]


def scheduled_run(
    dag: CanonicalDag, pes: Sequence[int], choices: Sequence[SchedulingOptions], show: ShowStage = show_nothing
) -> Run:
    """Schedule a canonical DAG with options that were checked already; see `schedule`."""
    found = schedule_dag(dag, pes, choices, show)
    report = summarize_schedules(found)
    return Run(report, schedule_results(report, ((dag, one) for one in found.schedules)))

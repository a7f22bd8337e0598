"""From a canonical DAG to its schedules: what ``dfcompile schedule`` does."""

from collections.abc import Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path

from dfcompile.api.requests import Counts, Names, counts_of, one_of, partitions_of
from dfcompile.api.runs import Run
from dfcompile.api.scheduled import schedule_results
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.dag_file import read_dag_file
from dfcompile.errors import UserError
from dfcompile.host.stages import counted
from dfcompile.option_texts import parse_fifos, parse_slack
from dfcompile.options import DEFAULT_SLACK, Effort, Objective, ShowStage, Timing, show_nothing
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler import ScheduleOptions, registered_partitioners
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.front import SHORTEST, Selection, grouped, options_text, selected
from dfcompile.scheduler.listing.cp_sat import NOT_PROVED, is_installed


def schedule(
    dag: CanonicalDag | str | PathLike[str],
    *,
    pes: Counts,
    partition: Names = "best",
    effort: str = "default",
    barrier: bool | None = None,
    timing: str = "exact",
    fifo: str | int | None = None,
    max_fifo: int | None = None,
    objective: str = "makespan",
    slack: str | float | Fraction = DEFAULT_SLACK,
    front: bool = False,
    simulate: bool = False,
    show: ShowStage = show_nothing,
) -> Run:
    """Schedule a canonical DAG on numbers of processing elements.

    The options are those of ``dfcompile schedule``, as Python values or as its texts.

    Args:
        dag: the graph, or its file, as text or JSON.
        pes: numbers of processing elements, each gives results.
        partition: names of partitioners, which are compared.
        effort: ``quick``, ``default`` or ``high``: how much is tried for a short schedule.
        barrier: whether a spatial block waits for the one before; ``None``: as the partitioner has it.
        timing: ``exact``, of a replay with the FIFOs of the schedule; or ``steady``, from mean intervals.
        fifo: ``in-flight``, ``rule``, ``minimal`` or a number of elements; ``None``: as the timing has it.
        max_fifo: elements that a FIFO may hold; ``None``: as many as it takes.
        objective: ``makespan``, the shortest schedule; or ``fifo``, the smallest FIFOs among schedules that take little
            more than the shortest.
        slack: how much more, as a part of the makespan; a text is a percentage.
        front: give all schedules found of which none is both shorter and of smaller FIFOs, instead of one.
        simulate: replay the schedules with their FIFOs.
        show: gives a context that lasts as long as a stage, for showing progress.

    Raises:
        UserError: the file cannot be read, or an option is none.
        InternalError: a bug of dfcompile.
    """
    choices, warnings = schedule_choices(
        counts_of(pes),
        partitions_of(partition),
        effort=effort,
        barrier=barrier,
        timing=timing,
        fifo=fifo,
        max_fifo=max_fifo,
        simulate=simulate,
    )
    selection = selection_of(objective, slack, front=front)
    if isinstance(dag, CanonicalDag):
        return scheduled_run(dag, choices, warnings, show, selection)
    with show(f"reading {dag}"):
        graph = read_dag_file(Path(dag))
    return scheduled_run(graph, choices, warnings, show, selection, (Path(dag),))


def schedule_choices(
    counts: Sequence[int],
    partitions: Sequence[str],
    *,
    effort: str,
    barrier: bool | None,
    timing: str,
    fifo: str | int | None,
    simulate: bool,
    max_fifo: int | None = None,
) -> tuple[tuple[ScheduleOptions, ...], tuple[str, ...]]:
    """Return the options of each schedule, and warnings: plug-ins that cannot be imported, proofs that are not tried.

    Raises:
        UserError: there is no such partitioner or timing, or FIFOs are no such thing.
    """
    known = registered_partitioners()
    for name in partitions:
        known.find(name, "--partition")
    tried = one_of("effort", effort, tuple(Effort))
    chosen, sizes = one_of("timing", timing, tuple(Timing)), None if fifo is None else parse_fifos(str(fifo))
    choices = tuple(
        ScheduleOptions(
            count,
            name,
            barrier=barrier,
            timing=chosen,
            fifos=sizes,
            simulated=simulate,
            effort=tried,
            max_fifo=max_fifo,
        )
        for count in counts
        for name in partitions
    )
    untried = (NOT_PROVED,) if tried is Effort.HIGH and not is_installed() else ()
    return choices, (*known.warnings, *untried)


def selection_of(objective: str, slack: str | float | Fraction, *, front: bool) -> Selection:
    """Return what is chosen of the schedules that are found.

    Raises:
        UserError: there is no such objective, the slack is no percentage, or a front is to be one schedule.
    """
    chosen = one_of("objective", objective, tuple(Objective))
    if front and chosen is Objective.FIFO:
        raise UserError(
            "--front: found --objective fifo, which chooses one, against a front, which has all (leave one out)"
        )
    part = parse_slack(slack) if isinstance(slack, str) else Fraction(slack)
    return Selection(chosen, part, front=front)


def scheduled_run(
    dag: CanonicalDag,
    choices: Sequence[ScheduleOptions],
    warnings: tuple[str, ...] = (),
    show: ShowStage = show_nothing,
    selection: Selection = SHORTEST,
    files: tuple[Path, ...] = (),
) -> Run:
    """Schedule a canonical DAG with options that were checked already; see `schedule`.

    Args:
        dag: the graph.
        choices: options of each schedule.
        warnings: of the report.
        show: gives a context that lasts as long as a stage.
        selection: what is chosen of the schedules that are found.
        files: that the graph comes from.

    Raises:
        InfeasibleError: of schedules to choose from none ends.
    """
    scheduling = Scheduling(dag)
    found: list[CheckedSchedule] = []
    said: list[str | None] = []
    for asked in counted(grouped(choices, selection)):
        first = asked[0]
        names = ", ".join(options.partition for options in asked)
        with show(f"scheduling on {first.pes} processing elements with {names}"):
            for one in selected(scheduling, asked, selection):
                found.append(one.found)
                said.append(None if selection == SHORTEST else options_text(one.options))
    report = summarize_schedules(scheduling, found, warnings, said)
    audit_schedules(report, dag, found)
    results = schedule_results(report, ((dag, one.schedule, one.figures) for one in found))
    return Run(report, results, files=files)

"""From a canonical DAG to its schedules: what ``dfcompile schedule`` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dfcompile.api.runs import Run, schedule_results
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.dag_file import read_dag_file
from dfcompile.host.stages import counted
from dfcompile.options import DEFAULT_SLACK, DagOptions, Effort, ShowStage, of_stage, read_options, show_nothing, takes
from dfcompile.options.readers import File
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler import ScheduleOptions, registered_partitioners
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.front import SHORTEST, Selection, grouped, options_text, selected
from dfcompile.scheduler.listing.cp_sat import NOT_PROVED, is_installed


@takes(DagOptions)
def schedule(dag: CanonicalDag | File, *, show: ShowStage = show_nothing, **options: Any) -> Run:
    """Schedule a canonical DAG on numbers of processing elements.

    The options are those of ``dfcompile schedule``, as Python values or as its texts.

    Args:
        dag: the graph, or its file, as text or JSON.
        show: gives a context that lasts as long as a stage, for showing progress.
        options: by name.

    Raises:
        UserError: the file cannot be read, or an option is none.
        InternalError: a bug of dfcompile.
    """
    file = Path() if isinstance(dag, CanonicalDag) else Path(dag)
    asked = read_options(DagOptions, {"dag": file, **options})
    choices, warnings = schedule_choices(asked)
    selection = selection_of(asked)
    if isinstance(dag, CanonicalDag):
        return scheduled_run(dag, choices, warnings, show, selection)
    with show(f"reading {dag}"):
        graph = read_dag_file(file)
    return scheduled_run(graph, choices, warnings, show, selection, (file,))


def schedule_choices(asked: DagOptions) -> tuple[tuple[ScheduleOptions, ...], tuple[str, ...]]:
    """Return the options of each schedule, and warnings: plug-ins that cannot be imported, proofs that are not tried.

    Raises:
        UserError: there is no such partitioner.
    """
    known = registered_partitioners()
    for name in asked.partition:
        known.find(name, "--partition")
    choices = tuple(
        ScheduleOptions(count, name, fifos=asked.fifo, simulated=asked.simulate, **of_stage(asked, "scheduling"))
        for count in asked.pes
        for name in asked.partition
    )
    untried = (NOT_PROVED,) if asked.effort is Effort.HIGH and not is_installed() else ()
    return choices, (*known.warnings, *untried)


def selection_of(asked: DagOptions) -> Selection:
    """Return what is chosen of the schedules that are found."""
    return Selection(asked.objective, DEFAULT_SLACK if asked.slack is None else asked.slack, front=asked.front)


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
    return Run(report, schedule_results(report, ((dag, one.schedule, one.figures) for one in found)), files=files)

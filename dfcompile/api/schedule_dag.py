"""From a canonical DAG to its schedules: what ``dfcompile schedule`` does."""

from pathlib import Path
from typing import Any

from dfcompile.api.runs import Run, schedule_results
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.json_form import read_dag_file
from dfcompile.dfmodel_backend import load_system
from dfcompile.dfmodel_backend.machine.plausibility import require_types
from dfcompile.dfmodel_backend.machine.system import OnChipStreams
from dfcompile.frontend import CANONICAL
from dfcompile.host.stages import counted
from dfcompile.lowering.expansion import registered_expansions
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
    if isinstance(dag, CanonicalDag):
        return run_of(read_options(DagOptions, {"dag": Path(), **options}), dag, show)
    asked = read_options(DagOptions, {"dag": dag, **options})
    schedule_choices(asked)  # what is wrong with them is said before the file is read
    with show(f"reading {dag}"):
        graph = read_dag_file(asked.dag)
    return run_of(asked, graph, show, (asked.dag,))


def schedule_choices(asked: DagOptions) -> tuple[tuple[ScheduleOptions, ...], tuple[str, ...]]:
    """Return the options of each schedule, and warnings: plug-ins that cannot be imported, proofs that are not tried.

    Raises:
        UserError: there is no such partitioner.
    """
    known = registered_partitioners()
    for name in asked.partition:
        known.find(name, "--partition")
    streams = _streams(asked)
    choices = tuple(
        ScheduleOptions(
            count,
            name,
            fifos=asked.fifo,
            simulated=asked.simulate,
            hardware=streams.hardware,
            what_if=streams.others(asked.what_if),
            **of_stage(asked, "scheduling"),
        )
        for count in asked.pes
        for name in asked.partition
    )
    untried = (NOT_PROVED,) if asked.effort is Effort.HIGH and not is_installed() else ()
    return choices, (*known.warnings, *untried)


def _streams(asked: DagOptions) -> OnChipStreams:
    return OnChipStreams() if asked.system is None else load_system(asked.system).streams


def run_of(asked: DagOptions, dag: CanonicalDag, show: ShowStage = show_nothing, files: tuple[Path, ...] = ()) -> Run:
    """Schedule a canonical DAG, which may come from files, with options that were read already; see `schedule`."""
    choices, warnings = schedule_choices(asked)
    streams = _streams(asked)
    if streams.operator_pipeline_cycles:
        kernels = (kernel.op for kernel in dag.kernels)
        require_types(streams, (*registered_expansions().op_types(CANONICAL), *kernels))
    selection = Selection(asked.objective, DEFAULT_SLACK if asked.slack is None else asked.slack, front=asked.front)
    scheduling = Scheduling(dag)
    found: list[CheckedSchedule] = []
    said: list[str | None] = []
    for group in counted(grouped(choices, selection)):
        names = ", ".join(options.partition for options in group)
        with show(f"scheduling on {group[0].pes} processing elements with {names}"):
            for one in selected(scheduling, group, selection):
                found.append(one.found)
                said.append(None if selection == SHORTEST else options_text(one.options))
    report = summarize_schedules(scheduling, found, warnings, said)
    audit_schedules(report, dag, found)
    return Run(report, schedule_results(report, ((dag, one.schedule, one.figures) for one in found)), files=files)

"""``dfcompile schedule``: schedules of a canonical DAG from a file."""

from pathlib import Path

import click

from dfcompile.cli.completion import complete_from
from dfcompile.cli.endings import warn
from dfcompile.cli.strict_command import StrictCommand, joined, target_of
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options import Timing, parse_fifos, parse_partitions, parse_pes

FORMATS = ("table", "json", "csv")
PARTITIONS = ("sb-rlx", "sb-lts", "work-ordered", "best")


def reject_several_schedules(option: str, schedules: int) -> None:
    """Check that a picture of one schedule is not asked for several.

    Raises:
        UserError: there are several.
    """
    if schedules > 1:
        raise UserError(
            f"{option}: found {schedules} schedules against one (give one --pes and one of each other choice)"
        )


def reject_overwriting(target: Path | None, read: Path) -> None:
    """Check that no file is written over the one that is read.

    Raises:
        UserError: it would be.
    """
    if target is not None and target.exists() and read.is_file() and target.samefile(read):
        raise UserError(f"output {str(target)!r}: found the file that is read against another one")


@click.command(name="schedule", cls=StrictCommand)
@click.argument("dag", type=click.Path(path_type=Path))
@click.option("--pes", required=True, multiple=True, metavar="P[,P…]",
              help="Numbers of processing elements; one result each.")  # fmt: skip
@click.option("--partition", default=("sb-rlx",), show_default=True, multiple=True, metavar="NAME[,NAME…]",
              shell_complete=complete_from(*PARTITIONS),
              help="How spatial blocks are filled: sb-rlx, sb-lts, work-ordered, best or a plug-in's; several are "
              "compared, and the best is marked.")  # fmt: skip
@click.option("--barrier/--no-barrier", default=None,
              help="Whether a spatial block waits for the one before; else as the partitioner has it.")  # fmt: skip
@click.option("--timing", type=click.Choice([value.value for value in Timing]), default="steady", show_default=True,
              help="Times from mean intervals, or element by element.")  # fmt: skip
@click.option("--fifo", default="rule", show_default=True, metavar="rule|minimal|N",
              help="Sizes of FIFOs: the published rule, the smallest that delay nothing, or N elements.")  # fmt: skip
@click.option("--simulate", is_flag=True, help="Replay the schedules with their FIFOs; say who waits for whom.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the one schedule as a trace for Perfetto or chrome://tracing.")  # fmt: skip
@click.option("--gantt", type=click.Path(path_type=Path), metavar="FILE", help="Draw the one schedule as an SVG.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def schedule_dag_file(
    *,
    dag: Path,
    pes: tuple[str, ...],
    partition: tuple[str, ...],
    barrier: bool | None,
    timing: str,
    fifo: str,
    simulate: bool,
    trace: Path | None,
    gantt: Path | None,
    format_: str,
    verbose: bool,
    output: Path | None,
) -> None:
    """Schedule a canonical DAG, given as its text or JSON file; - is standard input."""
    counts, partitions, fifos = parse_pes(joined(pes)), parse_partitions(joined(partition)), parse_fifos(fifo)
    output = target_of(output)
    for option, target in (("--trace", trace), ("--gantt", gantt)):
        if target is not None:
            reject_several_schedules(option, len(counts) * len(partitions))
    check_targets((output, trace, gantt))
    for target in (output, trace, gantt):
        reject_overwriting(target, dag)

    from dfcompile.canonical_dag.forms.dag_file import read_dag_file
    from dfcompile.cli.progress import show_stage
    from dfcompile.report.rendering import render
    from dfcompile.report.schedule_summary import summarize_schedules
    from dfcompile.scheduler import ScheduleOptions, registered_partitioners
    from dfcompile.scheduler.checked_schedule import Scheduling
    from dfcompile.visualization.gantt import check_drawable, schedule_to_svg
    from dfcompile.visualization.trace import schedule_to_trace

    known = registered_partitioners()
    for name in partitions:
        known.find(name, "--partition")
    for warning in known.warnings:
        warn(warning)
    choices = [
        ScheduleOptions(count, name, barrier=barrier, timing=Timing(timing), fifos=fifos, simulated=simulate)
        for count in counts
        for name in partitions
    ]
    with show_stage(f"reading {dag}"):
        graph = read_dag_file(dag)
    if gantt is not None:
        check_drawable(graph)
    scheduling, found = Scheduling(graph), []
    for chosen in choices:
        with show_stage(f"scheduling on {chosen.pes} processing elements with {chosen.partition}"):
            found.append(scheduling.on(chosen))
    text = render(summarize_schedules(scheduling, found, known.warnings), format_, output_width(), verbose=verbose)
    if trace is not None:
        write_text(schedule_to_trace(graph, found[0].schedule), trace)
    if gantt is not None:
        write_text(schedule_to_svg(graph, found[0].schedule), gantt)
    write_text(text, output)

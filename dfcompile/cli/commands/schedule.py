"""``dfcompile schedule``: schedules of a canonical DAG from a file."""

from pathlib import Path

import click

from dfcompile.api.requests import counts_of, partitions_of
from dfcompile.cli.completion import complete_format, complete_from
from dfcompile.cli.endings import warn
from dfcompile.cli.pages import HTML, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, target_of
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, write_text
from dfcompile.option_texts import parse_fifos, parse_max_fifo
from dfcompile.options import DEFAULT_SLACK, Effort, Objective, Timing

PARTITIONS = ("best", "sb-rlx", "sb-lts", "work-ordered")


def reject_several_schedules(option: str, schedules: int) -> None:
    """Check that a picture of one schedule is not asked for several.

    Raises:
        UserError: there are several.
    """
    if schedules > 1:
        raise UserError(
            f"{option}: found {schedules} schedules against one (give one --pes and one of each other choice)"
        )


@click.command(name="schedule", cls=StrictCommand)
@click.argument("dag", type=click.Path(path_type=Path))
@click.option("--pes", required=True, multiple=True, metavar="P[,P…]",
              help="Numbers of processing elements; one result each.")  # fmt: skip
@click.option("--partition", default=("best",), show_default=True, multiple=True, metavar="NAME[,NAME…]",
              shell_complete=complete_from(*PARTITIONS),
              help="How spatial blocks are filled: best, sb-rlx, sb-lts, work-ordered or a plug-in's; several are "
              "compared, and the best is marked.")  # fmt: skip
@click.option("--effort", type=click.Choice([value.value for value in Effort]), default="default", show_default=True,
              help="How much is tried for a short schedule.")  # fmt: skip
@click.option("--barrier/--no-barrier", default=None,
              help="Whether a spatial block waits for the one before; else as the partitioner has it.")  # fmt: skip
@click.option("--timing", type=click.Choice([value.value for value in Timing]), default="exact", show_default=True,
              help="Times of a replay with the FIFOs, or from mean intervals.")  # fmt: skip
@click.option("--fifo", metavar="in-flight|rule|minimal|N",
              help="Sizes of FIFOs: the elements in flight, which delays nothing; the published rule; the smallest "
              "that delay nothing; or N elements. Without, in-flight, and with --timing steady rule.")  # fmt: skip
@click.option("--max-fifo", metavar="N", help="No FIFO holds more than N elements.")
@click.option("--objective", type=click.Choice([value.value for value in Objective]), default="makespan",
              show_default=True, help="Which schedule is chosen: the shortest; or of those that take little more the "
              "one with the smallest FIFOs.")  # fmt: skip
@click.option("--slack", metavar="PERCENT",
              help="With --objective fifo, how much more it may take than the shortest. Without, 10.")  # fmt: skip
@click.option("--front", is_flag=True,
              help="Show all schedules found of which none is both shorter and of smaller FIFOs.")  # fmt: skip
@click.option("--simulate", is_flag=True, help="Replay the schedules with their FIFOs; say who waits for whom.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the one schedule as a trace for Perfetto or chrome://tracing.")  # fmt: skip
@click.option("--gantt", type=click.Path(path_type=Path), metavar="FILE", help="Draw the one schedule as an SVG.")
@HTML
@click.option("--format", "format_", default="table", show_default=True, metavar="NAME", shell_complete=complete_format,
              help="Of the report: table, json, csv or a plug-in's.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def schedule_dag_file(
    *,
    dag: Path,
    pes: tuple[str, ...],
    partition: tuple[str, ...],
    effort: str,
    barrier: bool | None,
    timing: str,
    fifo: str | None,
    max_fifo: str | None,
    objective: str,
    slack: str | None,
    front: bool,
    simulate: bool,
    trace: Path | None,
    gantt: Path | None,
    html: Path | None,
    format_: str,
    verbose: bool,
    output: Path | None,
) -> None:
    """Schedule a canonical DAG, given as its text, JSON or .npz file; - is standard input."""
    counts, partitions, fifos = counts_of(pes), partitions_of(partition), None if fifo is None else parse_fifos(fifo)
    output = target_of(output)
    for option, target in (("--trace", trace), ("--gantt", gantt)):
        if target is not None:
            reject_several_schedules(option, len(counts) * len(partitions))
            if front:
                raise UserError(f"{option}: found a front of schedules against one (leave out --front)")
    check_targets((output, trace, gantt, html))

    from dfcompile.cli.forms import find_format, page_of

    form = find_format(format_)

    from dfcompile.api.schedule_dag import schedule_choices, scheduled_run, selection_of
    from dfcompile.canonical_dag.forms.dag_file import read_dag_file
    from dfcompile.cli.pictures import schedule_pictures
    from dfcompile.visualization.gantt.chart import check_drawable

    choices, warnings = schedule_choices(
        counts,
        partitions,
        effort=effort,
        barrier=barrier,
        timing=timing,
        fifo=fifos,
        simulate=simulate,
        max_fifo=None if max_fifo is None else parse_max_fifo(max_fifo),
    )
    if slack is not None and objective != Objective.FIFO:
        raise UserError(f"--slack: found {slack!r} without --objective fifo, which alone has a slack")
    selection = selection_of(objective, DEFAULT_SLACK if slack is None else slack, front=front)
    for warning in warnings:
        warn(warning)
    with show_stage(f"reading {dag}"):
        graph = read_dag_file(dag)
    if gantt is not None:
        check_drawable(graph)
    run = scheduled_run(graph, choices, warnings, show_stage, selection, (dag,))
    text = form.text_of(run.report, page_of(verbose=verbose))
    pictures = schedule_pictures(run.schedules[0], trace, gantt)
    for target, picture in pictures.items():
        write_text(picture, target)
    written = [target for target in (trace, gantt) if target is not None]
    write_page(html, lambda: run.render("json"), lambda: run.page_source, written)
    write_text(text, output)

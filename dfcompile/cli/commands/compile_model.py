"""``dfcompile MODEL``: what a lowering of a model gives."""

from collections.abc import Sequence
from pathlib import Path

import click

import dfcompile
from dfcompile.api.requests import compile_options
from dfcompile.cli.commands.schedule import PARTITIONS, reject_several_schedules
from dfcompile.cli.completion import (
    PROGRAM,
    complete_format,
    complete_from,
    complete_lowering,
    complete_solver,
    complete_system,
)
from dfcompile.cli.endings import warn
from dfcompile.cli.model_options import DIMS, FIXED_INPUTS
from dfcompile.cli.pages import HTML, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, target_of
from dfcompile.errors import UserError
from dfcompile.expansion_names import QUICK
from dfcompile.host.outputs import check_folder, check_targets, write_folder, write_text
from dfcompile.options import OVERLAPS, Aim, Effort, Timing, Volumes

EMITTED = ("onnx", "library", "maps", "canonical", "schedule")

OTHER_COMMANDS = """\
Other commands (each has --help; a model with such a name is given as ./NAME):

\b
  expansions       what is registered for --expand, and where it comes from
  passes           what is registered for --passes, and where it comes from
  ops              the ONNX operators that have an expansion
  systems          the machines that --system knows by name
  plugins          the kinds of plug-ins, what is found of each, and what cannot be imported
  generate         write a graph: a canonical DAG, or a workload for DFModel
  schedule         schedule a canonical DAG file
  explore          the Pareto set over expansions, PEs and on-chip memory
  compare          what changed between reports
  SETUP.txt        solve a DFModel set-up file (.txt, .pbtxt, .pb)
"""


@click.command(name=PROGRAM, cls=StrictCommand, epilog=OTHER_COMMANDS)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--pes", required=True, multiple=True, metavar="P[,P…]",
              help="Numbers of processing elements; one result each.")  # fmt: skip
@click.option(
    "--expand", multiple=True, shell_complete=complete_lowering,
    metavar="auto|quick|published|[PATTERN/]OP=NAME[,NAME…]",
    help="Expansion of an operator type, of an operator (NAME=…) or of those that a pattern fits; several names and "
    "several rules are all combined, the rest as published, and the best is marked. auto: what is left open is "
    "chosen for each number of PEs, tasks as well; quick, and by default: the same, compared with fewer other choices. "
    "published: the default expansion of each type.",
)  # fmt: skip
@click.option("--objective", type=click.Choice([value.value for value in Aim]), default="makespan", show_default=True,
              help="What the choice of expansions makes small.")  # fmt: skip
@click.option("--volumes", type=click.Choice([value.value for value in Volumes]), default="exact", show_default=True,
              help="Of edges between tasks: each task's own share, or the whole array.")  # fmt: skip
@click.option("--partition", default="best", show_default=True, metavar="NAME",
              shell_complete=complete_from(*PARTITIONS),
              help="How spatial blocks are filled: best, sb-rlx, sb-lts, work-ordered or a plug-in's.")  # fmt: skip
@click.option("--effort", type=click.Choice([value.value for value in Effort]), default="quick", show_default=True,
              help="How much is tried for a short schedule.")  # fmt: skip
@click.option("--barrier/--no-barrier", default=None,
              help="Whether a spatial block waits for the one before; else as the partitioner has it.")  # fmt: skip
@click.option("--max-fifo", metavar="N", help="No FIFO holds more than N elements.")
@click.option("--timing", type=click.Choice([value.value for value in Timing]), default="exact", show_default=True,
              help="Times of schedules: of a replay with their FIFOs, or from mean intervals.")  # fmt: skip
@click.option("--repeat", metavar="N", default="1", show_default=True,
              help="Run the model N times, each on inputs of its own, beside each other.")  # fmt: skip
@click.option("--granularity", multiple=True, metavar="declared|[ORIGIN:]pieces=N|max-tasks=N|split=N",
              help="Tasks as the expansions declare them, scopes divided into pieces, families grouped, or large tasks "
              "split; what it leaves open is chosen where expansions are, else as declared.")  # fmt: skip
@click.option("--passes", multiple=True, metavar="NAME[{OPTION=VALUE,…}][,NAME…]",
              help="Passes of programs and of canonical DAGs to apply, in order.")  # fmt: skip
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=SIZExSIZE…", help="Size of a model input.")
@DIMS
@FIXED_INPUTS
@click.option("--system", metavar="FILE|NAME", shell_complete=complete_system,
              help="Machine, a file (-: stdin) or a name; by default the canonical one, one core per P.")  # fmt: skip
@click.option("--chips", default=("1",), show_default=True, multiple=True, metavar="N[,N…]",
              help="Chips at hand; kernels are sharded over as many of them as give the least time.")  # fmt: skip
@click.option("--overlap", type=click.Choice(OVERLAPS), default="perfect", show_default=True,
              help="Of compute, memory and network time of a configuration.")  # fmt: skip
@click.option("--solver", default="dp", show_default=True, metavar="NAME", shell_complete=complete_solver,
              help="For the configurations: dp, cbc, highs, assignment-cbc, assignment-highs, intervals "
              "or a plug-in's.")  # fmt: skip
@click.option("--verify", is_flag=True, help="Compile and run the lowered model and compare it with a reference.")
@click.option(
    "--emit", "emissions", multiple=True, type=(click.Choice(EMITTED), click.Path(path_type=Path)),
    metavar="KIND DIR",
    help=f"Write a stage's value to a folder; KIND is one of {', '.join(EMITTED)}. The folder is new, empty or an "
    "earlier --emit of the same kind, which is replaced.",
)  # fmt: skip
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the one schedule as a trace for Perfetto or chrome://tracing.")  # fmt: skip
@click.option("--gantt", type=click.Path(path_type=Path), metavar="FILE", help="Draw the one schedule as an SVG.")
@HTML
@click.option("--format", "format_", default="table", show_default=True, metavar="NAME", shell_complete=complete_format,
              help="Of the report: table, json, csv or a plug-in's.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
@click.version_option(dfcompile.__version__, prog_name="dfcompile", message="%(prog)s %(version)s")
def compile_model(
    *,
    model: Path,
    pes: tuple[str, ...],
    expand: tuple[str, ...],
    objective: str,
    volumes: str,
    partition: str,
    effort: str,
    barrier: bool | None,
    max_fifo: str | None,
    timing: str,
    repeat: str,
    granularity: tuple[str, ...],
    passes: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    fixed_inputs: tuple[str, ...],
    system: str | None,
    chips: tuple[str, ...],
    overlap: str,
    solver: str,
    verify: bool,
    emissions: tuple[tuple[str, Path], ...],
    trace: Path | None,
    gantt: Path | None,
    html: Path | None,
    format_: str,
    verbose: bool,
    output: Path | None,
) -> None:
    """Say what a lowering of MODEL gives on P processing elements: makespan, I/O, cost.

    MODEL is a Python file with model() and example_inputs(), which is run as code with your rights, or an .onnx
    file, which is data.
    """
    options = compile_options(
        model,
        pes=pes,
        expand=expand,
        objective=objective,
        passes=passes,
        shapes=shapes,
        dims=dims,
        fixed_inputs=fixed_inputs,
        volumes=volumes,
        partition=partition,
        effort=effort,
        barrier=barrier,
        max_fifo=max_fifo,
        timing=timing,
        repeat=repeat,
        granularity=granularity,
        system=system,
        chips=chips,
        overlap=overlap,
        solver=solver,
        verify=verify,
    )
    output = target_of(output)
    for option, target in (("--trace", trace), ("--gantt", gantt)):
        if target is not None:
            lowerings = 1 if options.automatic else len(options.combinations)
            reject_several_schedules(option, len(options.pes) * lowerings)
    check_targets((output, trace, gantt, html))
    for _, folder in emissions:
        check_folder(folder)
    _reject_one_folder_twice([folder for _, folder in emissions])

    from dfcompile.cli.forms import find_format, page_of

    form = find_format(format_)

    from dfcompile.api.compile_model import run_of
    from dfcompile.cli.pictures import schedule_pictures

    run = run_of(options, show_stage)
    for warning in run.report.warnings:
        warn(warning)
    text = form.text_of(run.report, page_of(verbose=verbose))
    pictures = schedule_pictures(run.schedules[0], trace, gantt)
    written = [target for target in (trace, gantt) if target is not None]
    for kind, folder in emissions:
        from dfcompile.cli.emissions import emitted_files  # which draws: most runs emit nothing

        with show_stage(f"emitting {kind}"):
            files = emitted_files(run.exploration, kind)
        write_folder(files, folder)
        written += [folder / name for name in files]
    for target, picture in pictures.items():
        write_text(picture, target)
    said = () if expand else ("--expand", QUICK)  # what is chosen by default today
    write_page(html, lambda: run.render("json"), lambda: run.page_source, written, said)
    write_text(text, output)


def _reject_one_folder_twice(folders: Sequence[Path]) -> None:
    for position, folder in enumerate(folders):
        if folder.absolute() in [earlier.absolute() for earlier in folders[:position]]:
            raise UserError(f"--emit: folder {str(folder)!r} is given twice")

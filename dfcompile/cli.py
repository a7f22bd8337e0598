"""The command line: reads options, calls the driver, prints or writes; the only place that turns errors into exits.

Nothing heavy is imported here: ``dfcompile --help`` must answer at once. The commands import the driver when they run.
"""

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import click

import dfcompile
from dfcompile.design_command import is_design_call, solve_design_file
from dfcompile.errors import UserError
from dfcompile.generate_command import generate
from dfcompile.options import (
    OVERLAPS,
    TIMINGS,
    VOLUMES,
    Options,
    Overlap,
    Timing,
    Volumes,
    parse_chips,
    parse_expand,
    parse_passes,
    parse_pes,
    parse_shapes,
)
from dfcompile.outputs import check_folder, check_targets, output_width, write_folder, write_text
from dfcompile.schedule_command import FORMATS, reject_several_schedules, schedule_dag_file

EMITTED = ("onnx", "library", "maps", "canonical", "schedule")

OTHER_COMMANDS = """\
Other commands (each has --help; a model with such a name is given as ./NAME):

\b
  expansions       what is registered for --expand, and where it comes from
  passes           what is registered for --passes, and where it comes from
  ops              the ONNX operators that have an expansion
  systems          the machines that --system knows by name
  generate         write a graph: a canonical DAG, or a workload for DFModel
  schedule         schedule a canonical DAG file
  SETUP.txt        solve a DFModel set-up file (.txt, .pbtxt, .pb)
"""


@click.command(name="dfcompile", epilog=OTHER_COMMANDS)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--pes", required=True, metavar="P[,P…]", help="Numbers of processing elements; one result each.")
@click.option(
    "--expand", multiple=True, metavar="[ORIGIN:]OP=NAME[,NAME…]",
    help="Expansion of an operator type, or of one operator; several names and several rules are all combined, and "
    "the best is marked.",
)  # fmt: skip
@click.option("--volumes", type=click.Choice(VOLUMES), default="exact", show_default=True,
              help="Of edges between tasks: each task's own share, or the whole array.")  # fmt: skip
@click.option("--partition", default="sb-rlx", show_default=True, metavar="NAME",
              help="How spatial blocks are filled: sb-rlx, sb-lts, work-ordered, best or a plug-in's.")  # fmt: skip
@click.option("--barrier/--no-barrier", default=None,
              help="Whether a spatial block waits for the one before; else as the partitioner has it.")  # fmt: skip
@click.option("--timing", type=click.Choice(TIMINGS), default="steady", show_default=True,
              help="Times of schedules from mean intervals, or element by element.")  # fmt: skip
@click.option("--granularity", default="declared", show_default=True, metavar="declared|max-tasks=N|split=N",
              help="Tasks as the expansions declare them, families grouped, or large tasks split.")  # fmt: skip
@click.option("--passes", metavar="NAME[,NAME…]", help="Lowering passes to apply, in order.")
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=SIZExSIZE…", help="Size of a model input.")
@click.option("--system", metavar="FILE|NAME", help="Machine; by default the canonical one, one core per P.")
@click.option("--chips", default="1", show_default=True, metavar="N[,N…]",
              help="Chips at hand; kernels are sharded over as many of them as give the least time.")  # fmt: skip
@click.option("--overlap", type=click.Choice(OVERLAPS), default="perfect", show_default=True,
              help="Of compute, memory and network time of a configuration.")  # fmt: skip
@click.option("--solver", default="dp", show_default=True, metavar="NAME",
              help="For the configurations: dp, cbc, highs, assignment-cbc, assignment-highs, intervals.")  # fmt: skip
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
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there, not to stdout.")
@click.version_option(dfcompile.__version__, prog_name="dfcompile", message="%(prog)s %(version)s")
def compile_model(
    *,
    model: Path,
    pes: str,
    expand: tuple[str, ...],
    volumes: str,
    partition: str,
    barrier: bool | None,
    timing: str,
    granularity: str,
    passes: str | None,
    shapes: tuple[str, ...],
    system: str | None,
    chips: str,
    overlap: str,
    solver: str,
    verify: bool,
    emissions: tuple[tuple[str, Path], ...],
    trace: Path | None,
    gantt: Path | None,
    format_: str,
    output: Path | None,
) -> None:
    """Say what a lowering of MODEL gives on P processing elements: makespan, I/O, cost.

    MODEL is a Python file with model() and example_inputs(), which is run as code with your rights, or an .onnx
    file, which is data.
    """
    options = Options(
        model=model,
        pes=parse_pes(pes),
        expand=parse_expand(expand),
        passes=() if passes is None else parse_passes(passes),
        shapes=parse_shapes(shapes),
        volumes=cast("Volumes", volumes),
        partition=partition,
        barrier=barrier,
        timing=cast("Timing", timing),
        granularity=granularity,
        system=system,
        overlap=cast("Overlap", overlap),
        solver=solver,
        verify=verify,
        chips=parse_chips(chips),
    )
    for option, target in (("--trace", trace), ("--gantt", gantt)):
        if target is not None:
            reject_several_schedules(option, len(options.pes) * len(options.combinations))
    check_targets((output, trace, gantt))
    for _, folder in emissions:
        check_folder(folder)
    _reject_one_folder_twice([folder for _, folder in emissions])

    from dfcompile.driver import explore
    from dfcompile.emissions import emitted_files, schedule_pictures
    from dfcompile.progress import show_stage
    from dfcompile.rendering import render
    from dfcompile.summary import summarize

    exploration = explore(options, show_stage)
    text = render(summarize(exploration), format_, width=output_width())
    pictures = schedule_pictures(exploration, trace, gantt)
    for kind, folder in emissions:
        write_folder(emitted_files(exploration, kind), folder)
    for target, picture in pictures.items():
        write_text(picture, target)
    write_text(text, output)


def _reject_one_folder_twice(folders: Sequence[Path]) -> None:
    for position, folder in enumerate(folders):
        if folder.absolute() in [earlier.absolute() for earlier in folders[:position]]:
            raise UserError(f"--emit: folder {str(folder)!r} is given twice")


@click.command(name="expansions")
def list_expansions() -> None:
    """List what is registered for --expand, and where it comes from."""
    from dfcompile.listings import expansions_listing

    write_text(expansions_listing(output_width()), None)


@click.command(name="passes")
def list_passes() -> None:
    """List what is registered for --passes, and where it comes from."""
    from dfcompile.listings import passes_listing

    write_text(passes_listing(output_width()), None)


@click.command(name="ops")
def list_ops() -> None:
    """List the ONNX operators that have an expansion, and what is next for the canonical ones."""
    from dfcompile.listings import ops_listing

    write_text(ops_listing(output_width()), None)


@click.command(name="systems")
def list_systems() -> None:
    """List the machines that --system knows by name."""
    from dfcompile.listings import systems_listing

    write_text(systems_listing(output_width()), None)


COMMANDS: Final = {
    command.name: command
    for command in (list_expansions, list_passes, list_ops, list_systems, generate, schedule_dag_file)
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 (the user can mend it), 2 (a bug of dfcompile) or 130 (interrupted)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow encoding is no reason to lose a result
    try:
        _run(words)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), status=1)
    except UserError as error:
        return _fail(str(error), status=1)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        return _leave_closed_pipe()
    except Exception as error:  # noqa: BLE001  # the last resort: whatever it is, the user gets one line
        return _ask_for_report(error)
    return 0


def _run(words: list[str]) -> None:
    command: click.Command = compile_model
    prefix = "dfcompile"
    if words and words[0] in COMMANDS:
        command = COMMANDS[words[0]]
        prefix = f"dfcompile {words.pop(0)}"
    elif is_design_call(words):
        command = solve_design_file
    with command.make_context(prefix, words) as context:
        command.invoke(context)


def _fail(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(f"dfcompile: error: {line[:1].lower()}{line[1:]}".rstrip("."), file=sys.stderr)  # noqa: T201
    return status


def _ask_for_report(error: Exception) -> int:
    handle, name = tempfile.mkstemp(prefix="dfcompile-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"dfcompile {dfcompile.__version__}, python {sys.version}\n{' '.join(sys.argv)}\n")
        file.write("".join(traceback.format_exception(error)))
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    line = f"dfcompile: internal error: {reason} (please report it with {name})"
    print(line, file=sys.stderr)  # noqa: T201
    return 2


def _leave_closed_pipe() -> int:
    # Python flushes stdout once more when it exits; that must not fail a second time.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1

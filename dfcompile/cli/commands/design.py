"""``dfcompile SETUP``: solves a DFModel set-up file."""

from collections.abc import Sequence
from pathlib import Path

import click

from dfcompile.cli.completion import PROGRAM, complete_format, complete_solver
from dfcompile.cli.endings import warn
from dfcompile.cli.pages import HTML, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand
from dfcompile.host.outputs import check_folder, check_targets, output_width, write_folder, write_text

SUFFIXES = (".txt", ".pbtxt", ".txtpb", ".textproto", ".prototxt", ".pb", ".binpb", ".bin")
OBJECTIVES = ("bytes", "time")
STANDARD_INPUT = "-"
INPUTS = (".py", ".onnx")


def is_design_call(words: Sequence[str]) -> bool:
    """Return whether a command line names a set-up file, or standard input, and no model."""
    if words and not words[0].startswith("-"):
        return words[0].lower().endswith(SUFFIXES) or words[0] == STANDARD_INPUT
    names = [word for before, word in zip(("", *words), words, strict=False) if before not in ("-o", "--output")]
    if any(name.lower().endswith(INPUTS) for name in names):
        return False
    return any(name.lower().endswith(SUFFIXES) or name == STANDARD_INPUT for name in names)


@click.command(name=PROGRAM, cls=StrictCommand)
@click.argument("setup", type=click.Path(path_type=Path))
@click.option("--compat", default="right", show_default=True, metavar="right|dfmodel[,SWITCH…]",
              help="Repeat flaws of DFModel: all of its newest code (dfmodel), then switches such as network-is-sum, "
              "no-weights-not-read, all-reduce-factor=2; see the manual.")  # fmt: skip
@click.option("--solver", default="dp", show_default=True, metavar="NAME", shell_complete=complete_solver,
              help="For the configurations: dp, cbc, highs, assignment-cbc, assignment-highs, intervals "
              "or a plug-in's.")  # fmt: skip
@click.option("--sharding-objective", type=click.Choice(OBJECTIVES), show_default="time; bytes with --compat dfmodel",
              help="What the sharding minimises: bytes between chips, or time.")  # fmt: skip
@HTML
@click.option("--format", "format_", default="table", show_default=True, metavar="NAME", shell_complete=complete_format,
              help="Of the report: table, json, csv or a plug-in's.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="Write the solved file, the report and pictures there. The folder is new, empty or an earlier one.",
              )  # fmt: skip
def solve_design_file(
    *,
    setup: Path,
    compat: str,
    solver: str,
    sharding_objective: str | None,
    format_: str,
    verbose: bool,
    html: Path | None,
    output: Path | None,
) -> None:
    """Solve SETUP, a DFModel set-up file: shard its kernels, choose what it leaves open, fuse them.

    The file is text or binary; - is standard input.
    """
    check_targets((html,))
    if output is not None:
        check_folder(output)

    from dfcompile.cli.forms import find_format, page_of

    form = find_format(format_)

    from dfcompile.api.solve_design import solve
    from dfcompile.dfmodel_backend.design_file.message import bytes_of, text_of
    from dfcompile.dfmodel_backend.design_file.solved import solved_message
    from dfcompile.dfmodel_backend.fusion.registry import fusion_solvers
    from dfcompile.report.plain_values import to_json
    from dfcompile.visualization.design import to_dot

    with show_stage(f"solving {setup}"):
        run = solve(setup, compat=compat, solver=solver, sharding_objective=sharding_objective)
    for warning in (*fusion_solvers().warnings, *(f"{setup}: {warning}" for warning in run.report.warnings)):
        warn(warning)
    text = form.text_of(run.report, page_of(verbose=verbose))
    written: list[Path] = []
    if output is not None:
        solved = solved_message(run.message, run.solution)
        files: dict[str, str | bytes] = {
            "solved.txt": text_of(solved),
            "solved.pb": bytes_of(solved),
            "report.txt": run.render("table", width=output_width()),
            "report.json": to_json(run.report),
            "graph.dot": to_dot(run.solution),
            "graph.svg": run.graph().svg,
        }
        files |= {f"placement-{number}.svg": picture.svg for number, picture in run.placements().items()}
        write_folder(files, output)
        written = [output / name for name in files]
    write_page(html, lambda: to_json(run.report), lambda: run.page_source, written)
    write_text(text, None)

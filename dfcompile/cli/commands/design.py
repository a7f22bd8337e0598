"""``dfcompile SETUP``: solves a DFModel set-up file."""

from collections.abc import Sequence
from pathlib import Path

import click

from dfcompile.cli.completion import PROGRAM, complete_solver
from dfcompile.cli.endings import warn
from dfcompile.cli.strict_command import StrictCommand
from dfcompile.host.outputs import check_folder, output_width, write_folder, write_text

SUFFIXES = (".txt", ".pbtxt", ".txtpb", ".textproto", ".prototxt", ".pb", ".binpb", ".bin")
FORMATS = ("table", "json")
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
@click.option("--sharding-objective", type=click.Choice(OBJECTIVES), default="bytes", show_default=True,
              help="What the sharding minimises: bytes between chips, or time.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="Write the solved file, the report and pictures there. The folder is new, empty or an earlier one.",
              )  # fmt: skip
def solve_design_file(
    *, setup: Path, compat: str, solver: str, sharding_objective: str, format_: str, verbose: bool, output: Path | None
) -> None:
    """Solve SETUP, a DFModel set-up file: shard its kernels, choose what it leaves open, fuse them.

    The file is text or binary; - is standard input.
    """
    if output is not None:
        check_folder(output)

    from dfcompile.dfmodel_backend.check.designs import check_design
    from dfcompile.dfmodel_backend.check.placement import check_placements
    from dfcompile.dfmodel_backend.compatibility import parse_compatibility
    from dfcompile.dfmodel_backend.design_file.message import bytes_of, read_message, text_of
    from dfcompile.dfmodel_backend.design_file.second_memory import solve_message
    from dfcompile.dfmodel_backend.design_file.solved import solved_message
    from dfcompile.dfmodel_backend.design_options import DesignOptions, ShardingObjective
    from dfcompile.dfmodel_backend.fusion.registry import find_solver, fusion_solvers
    from dfcompile.dfmodel_backend.placement.placed_design import place_design
    from dfcompile.report.design.figures import to_json
    from dfcompile.report.design.summary import summarize_design
    from dfcompile.report.design.tables import design_table
    from dfcompile.visualization.design import to_dot, to_svg
    from dfcompile.visualization.placement import placement_svg

    options = DesignOptions(
        find_solver(solver).name, ShardingObjective(sharding_objective), parse_compatibility(compat)
    )
    message = read_message(setup)
    solution = solve_message(message, str(setup), options)
    check_design(solution.design, solution.decision, solution.figures, options.compatibility)
    placed = place_design(solution.design, solution.decision, solution.figures, options.compatibility)
    check_placements(solution.design, solution.figures, placed)
    report = summarize_design("stdin" if str(setup) == STANDARD_INPUT else setup.stem, solution, placed)
    for warning in (*fusion_solvers().warnings, *(f"{setup}: {warning}" for warning in report.warnings)):
        warn(warning)
    text = to_json(report) if format_ == "json" else design_table(report, output_width(), verbose=verbose)
    if output is not None:
        solved = solved_message(message, solution)
        files: dict[str, str | bytes] = {
            "solved.txt": text_of(solved),
            "solved.pb": bytes_of(solved),
            "report.txt": design_table(report, output_width()),
            "report.json": to_json(report),
            "graph.dot": to_dot(solution),
            "graph.svg": to_svg(solution),
        }
        files |= {f"placement-{one.configuration}.svg": placement_svg(solution.design, one) for one in placed}
        write_folder(files, output)
    write_text(text, None)

"""``dfcompile SETUP``: solves a DFModel set-up file."""

from collections.abc import Sequence
from pathlib import Path

from dfcompile.cli.completion import PROGRAM
from dfcompile.cli.endings import warn
from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.host.outputs import check_folder, check_targets, output_width, write_folder, write_text
from dfcompile.options.commands import SetupOptions, SetupOutputs

SUFFIXES = (".txt", ".pbtxt", ".txtpb", ".textproto", ".prototxt", ".pb", ".binpb", ".bin")
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


@table_command(PROGRAM, SetupOptions, SetupOutputs)
def solve_design_file(options: SetupOptions, outputs: SetupOutputs) -> None:
    """Solve SETUP, a DFModel set-up file: shard its kernels, choose what it leaves open, fuse them.

    The file is text or binary; - is standard input.
    """
    setup, output = options.setup, outputs.output
    check_targets((outputs.html,))
    if output is not None:
        check_folder(output)

    from dfcompile.api.solve_design import solved
    from dfcompile.dfmodel_backend.design_file.message import bytes_of, text_of
    from dfcompile.dfmodel_backend.design_file.solved import solved_message
    from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solvers
    from dfcompile.visualization.design import to_dot

    with show_stage(f"solving {setup}"):
        run = solved(options)
    warn(*fusion_solvers().warnings, *(f"{setup}: {warning}" for warning in run.report.warnings))
    text = run.render(outputs.format, width=output_width(), verbose=outputs.verbose)
    written: list[Path] = []
    if output is not None:
        message = solved_message(run.message, run.solution)
        files: dict[str, str | bytes] = {
            "solved.txt": text_of(message),
            "solved.pb": bytes_of(message),
            "report.txt": run.render("table", width=output_width()),
            "report.json": run.report_json,
            "graph.dot": to_dot(run.solution),
            "graph.svg": run.graph().svg,
        }
        files |= {f"placement-{number}.svg": picture.svg for number, picture in run.placements().items()}
        write_folder(files, output)
        written = [output / name for name in files]
    write_page(outputs.html, run, written)
    write_text(text, None)

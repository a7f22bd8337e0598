"""``dfcompile MODEL``: what a lowering of a model gives."""

from pathlib import Path

import click

import dfcompile
from dfcompile.cli.completion import PROGRAM
from dfcompile.cli.endings import warn
from dfcompile.cli.pages import schedule_pictures, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.expansion_names import QUICK
from dfcompile.host.outputs import check_folders, check_targets, output_width, write_folder, write_text
from dfcompile.options import Options, Outputs, Pictures, table
from dfcompile.options.option import output
from dfcompile.options.shared import emissions

COMMANDS = """\
\b
Compile:
  MODEL --pes P    which lowering, on how many PEs: time, I/O and cost
  SETUP.txt        solve a DFModel set-up file (.txt, .pbtxt, .pb)
  schedule         schedule a canonical DAG file
  generate         write a graph: a canonical DAG, or a workload for DFModel
  rtl              simulate the circuits that --emit rtl wrote

\b
Explore:
  explore          the Pareto set over expansions, PEs and on-chip memory
  bounds           how little a model or a shape can move, whatever the buffer

\b
Look:
  compare          what changed between reports

\b
Language models:
  llm              prompts and tokens of a model, from its config.json
  configs          the configurations that llm --config knows by name

\b
List:
  systems          the machines that --system knows by name
  expansions       what --expand may name; 'expansions Conv' says what each does
  ops              the ONNX operators that have an expansion
  passes           what is registered for --passes, and where it comes from
  plugins          the kinds of plug-ins, what is found of each, and what cannot be imported

\b
All options: dfcompile --help; of a command: dfcompile COMMAND --help.
A model with the name of a command is given as ./NAME.
"""


@table
class Emissions:
    """Values of stages, and choices, that are written."""

    emissions: tuple[tuple[str, Path], ...] = emissions(
        "a stage's value",
        ("onnx", "library", "maps", "canonical", "schedule", "rtl", "rtl-values"),
        "`onnx`, `library`, `maps`: the three levels as text and SDFG files; "
        "`canonical`: the DAG in its [two forms](dag-files.md), and for Graphviz; "
        "`schedule`: JSON and a trace; `rtl`: a [circuit](hardware.md) that takes the cycles of the schedule; "
        "`rtl-values`: one that computes the outputs of the example inputs in them.",
    )
    save_choice: Path | None = output(
        "Write the choice of expansions and granularity, which --choice takes.",
        more="See [keeping a choice](choosing.md#keeping-a-choice).",
    )


@click.version_option(dfcompile.__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@table_command(PROGRAM, Options, Emissions, Pictures, Outputs, epilog=COMMANDS)
def compile_model(options: Options, emitted: Emissions, pictured: Pictures, outputs: Outputs) -> None:
    """Say how MODEL is best lowered on P processing elements (PEs), what that takes, and how far from the optimum.

    MODEL is a Python file with model() and example_inputs(), which is run as code with your rights, or an .onnx
    file, which is data.
    """
    lowerings = 1 if options.expand.chooses else len(options.expand.combinations)
    pictured.check_one(len(options.pes) * lowerings)
    check_targets((outputs.output, *pictured.targets.values(), outputs.html, emitted.save_choice))
    check_folders([folder for _, folder in emitted.emissions])

    from dfcompile.api.compile_model import run_of
    from dfcompile.report.screen import saved_choice

    has_values = any(kind == "rtl-values" for kind, _ in emitted.emissions)
    run = run_of(options, show_stage, reads_weights=has_values)
    warn(*run.report.warnings)
    text = run.render(outputs.format, width=output_width(), verbose=outputs.verbose, show=outputs.show)
    pictures = schedule_pictures(run.schedules[0], pictured)
    choice = None if emitted.save_choice is None else saved_choice(run.report)  # nothing is written if there is none
    written = list(pictured.targets.values())
    for kind, folder in emitted.emissions:
        from dfcompile.cli.emissions import emitted_files  # which draws: most runs emit nothing

        with show_stage(f"emitting {kind}"):
            files = emitted_files(run.exploration, kind)
        write_folder(files, folder)
        written += [folder / name for name in files]
    if emitted.save_choice is not None and choice is not None:
        write_text(choice, emitted.save_choice)
        written.append(emitted.save_choice)
    for target, picture in pictures.items():
        write_text(picture, target)
    # What is chosen by default today.
    params = click.get_current_context().params
    said = () if params["expand"] or params["choice"] else ("--expand", QUICK)
    write_page(outputs.html, run, written, said)
    write_text(text, outputs.output)

"""``dfcompile schedule``: schedules of a canonical DAG from a file."""

from pathlib import Path

from dfcompile.cli.endings import warn
from dfcompile.cli.pages import schedule_pictures, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_folders, check_targets, output_width, write_folder, write_text
from dfcompile.options import DagOptions, Outputs, Pictures, table
from dfcompile.options.shared import emissions


@table
class DagEmissions:
    """Values of schedules that are written."""

    emissions: tuple[tuple[str, Path], ...] = emissions(
        "the schedules", ("rtl",), "`rtl`: a [circuit](hardware.md) for each, that takes its cycles."
    )


@table_command("schedule", DagOptions, DagEmissions, Pictures, Outputs)
def schedule_dag_file(options: DagOptions, emitted: DagEmissions, pictured: Pictures, outputs: Outputs) -> None:
    """Schedule a canonical DAG, given as its text or JSON file; - is standard input.

    Of a graph of actors (XML of SDF3, or a list of nodes) find the sizes of its channels.
    """
    pictured.check_one(len(options.pes) * len(options.partition))
    for name in pictured.targets if options.front else ():
        raise UserError(f"{name}: found a front of schedules against one (leave out --front)")
    check_targets((outputs.output, *pictured.targets.values(), outputs.html))
    check_folders([folder for _, folder in emitted.emissions])

    from dfcompile.api.schedule_dag import actors_of_text, actors_run, run_of, schedule_choices
    from dfcompile.canonical_dag.forms.json_form import dag_of_file, graph_text
    from dfcompile.visualization.gantt.chart import check_drawable

    warn(*schedule_choices(options)[1])
    with show_stage(f"reading {options.dag}"):
        text = graph_text(options.dag)
        actors = actors_of_text(text, options.dag)
        graph = dag_of_file(text, options.dag) if actors is None else None
    if actors is not None:
        others = {**pictured.targets, "--emit": emitted.emissions, "--show": outputs.show}
        with show_stage(f"sizing the channels of {options.dag}"):
            found = actors_run(options, actors, [name for name, value in others.items() if value], (options.dag,))
        write_page(outputs.html, found)
        write_text(found.text(outputs.format, output_width(), verbose=outputs.verbose), outputs.output)
        return
    assert graph is not None  # it is one of the two
    if pictured.gantt is not None:
        check_drawable(graph)
    run = run_of(options, graph, show_stage, (options.dag,))
    text = run.render(outputs.format, width=output_width(), verbose=outputs.verbose, show=outputs.show)
    written = list(pictured.targets.values())
    for kind, folder in emitted.emissions:
        from dfcompile.cli.emissions import emitted_schedules  # which draws: most runs emit nothing

        with show_stage(f"emitting {kind}"):
            files = emitted_schedules(run.schedules)
        write_folder(files, folder)
        written += [folder / name for name in files]
    for target, picture in schedule_pictures(run.schedules[0], pictured).items():
        write_text(picture, target)
    write_page(outputs.html, run, written)
    write_text(text, outputs.output)

"""``dfcompile schedule``: schedules of a canonical DAG from a file."""

from dfcompile.cli.endings import warn
from dfcompile.cli.pages import schedule_pictures, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options import DagOptions, Outputs, Pictures


@table_command("schedule", DagOptions, Pictures, Outputs)
def schedule_dag_file(options: DagOptions, pictured: Pictures, outputs: Outputs) -> None:
    """Schedule a canonical DAG, given as its text or JSON file; - is standard input."""
    pictured.check_one(len(options.pes) * len(options.partition))
    for name in pictured.targets if options.front else ():
        raise UserError(f"{name}: found a front of schedules against one (leave out --front)")
    check_targets((outputs.output, *pictured.targets.values(), outputs.html))

    from dfcompile.api.schedule_dag import run_of, schedule_choices
    from dfcompile.canonical_dag.forms.dag_file import read_dag_file
    from dfcompile.visualization.gantt.chart import check_drawable

    warn(*schedule_choices(options)[1])
    with show_stage(f"reading {options.dag}"):
        graph = read_dag_file(options.dag)
    if pictured.gantt is not None:
        check_drawable(graph)
    run = run_of(options, graph, show_stage, (options.dag,))
    text = run.render(outputs.format, width=output_width(), verbose=outputs.verbose, show=outputs.show)
    for target, picture in schedule_pictures(run.schedules[0], pictured).items():
        write_text(picture, target)
    write_page(outputs.html, run, list(pictured.targets.values()))
    write_text(text, outputs.output)

"""``dfcompile explore``: the Pareto set of a model's lowerings."""

from pathlib import Path

import click

from dfcompile.cli.completion import complete_expansion, complete_from, complete_system
from dfcompile.cli.endings import warn
from dfcompile.cli.model_options import DIMS, FIXED_INPUTS
from dfcompile.cli.pages import HTML, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, joined, target_of
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.host.saved_rows import check_saved, save_rows
from dfcompile.options import DEFAULT_TRIES


@click.command(name="explore", cls=StrictCommand)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--pes", required=True, multiple=True, metavar="P[,P…]", help="Numbers of processing elements.")
@click.option("--on-chip-memory", required=True, multiple=True, metavar="M[,M…]",
              help="Amounts of on-chip memory, in kB or with a unit: 256,1024,8MB.")  # fmt: skip
@click.option("--objective", multiple=True, default=("makespan,io,area",), show_default=True, metavar="NAME[,NAME…]",
              shell_complete=complete_from("makespan", "io", "area", "energy", "cost"),
              help="What is to be small: makespan, io, area, energy, cost.")  # fmt: skip
@click.option("--expand", multiple=True, shell_complete=complete_expansion, metavar="[ORIGIN:]OP=NAME[,NAME…]",
              help="What is chosen from; what no rule names is as by default. Without a rule everything is chosen "
              "from all its expansions.")  # fmt: skip
@click.option("--granularity", multiple=True, default=("declared",), show_default=True, metavar="NAME",
              help="Of the tasks: declared, pieces=N, max-tasks=N, split=N; several are compared.")  # fmt: skip
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=SIZExSIZE…",
              help="Size of a model input that the model leaves open.")  # fmt: skip
@DIMS
@FIXED_INPUTS
@click.option("--system", metavar="FILE|NAME", shell_complete=complete_system,
              help="The machine whose power and prices count.")  # fmt: skip
@click.option("--partition", default="sb-rlx", show_default=True, metavar="NAME",
              help="How spatial blocks are filled.")  # fmt: skip
@click.option("--tries", type=int, default=DEFAULT_TRIES, show_default=True, metavar="N",
              help="Schedules that are made at most; large ones count as several.")  # fmt: skip
@click.option("--jobs", type=int, metavar="N", help="Processes on this machine. Without, one per processor.")
@click.option("--cluster", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://host:8786.")
@click.option("--cache", type=click.Path(path_type=Path), metavar="FILE",
              help="Results that were found before. Without, in the user's cache folder.")  # fmt: skip
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the Pareto set as .sqlite (table front) or .parquet.")  # fmt: skip
@HTML
@click.option("--format", "format_", default="table", show_default=True, metavar="NAME",
              shell_complete=complete_from("table", "json", "csv"), help="table, json or csv.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def explore(
    *,
    model: Path,
    pes: tuple[str, ...],
    on_chip_memory: tuple[str, ...],
    objective: tuple[str, ...],
    expand: tuple[str, ...],
    granularity: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    fixed_inputs: tuple[str, ...],
    system: str | None,
    partition: str,
    tries: int,
    jobs: int | None,
    cluster: str | None,
    cache: Path | None,
    save: Path | None,
    html: Path | None,
    format_: str,
    verbose: bool,
    output: Path | None,
) -> None:
    """Find the Pareto set of a model's lowerings over expansions, granularities, PEs and on-chip memory.

    What was computed before is not computed again: an exploration that was stopped goes on where it was.
    """
    output = target_of(output)
    check_targets((output, save, html))
    check_saved(save)

    from dfcompile.report.exploration import check_exploration_format

    form = check_exploration_format(format_)

    from dfcompile.api.explore_model import explore_model

    run = explore_model(
        model,
        pes=pes,
        on_chip_memory=joined(on_chip_memory),
        objective=joined(objective),
        expand=expand,
        granularity=granularity,
        shapes=shapes,
        dims=dims,
        fixed_inputs=fixed_inputs,
        system=system,
        partition=partition,
        tries=tries,
        jobs=jobs,
        cluster=cluster,
        cache=cache,
        show=show_stage,
        warn=warn,
    )
    text = run.text(form, output_width(), verbose=verbose)
    if save is not None:
        save_rows(run.rows, save)
    write_page(html, lambda: run.text("json"), lambda: run.page_source)
    write_text(text, output)

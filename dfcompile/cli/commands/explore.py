"""``dfcompile explore``: the Pareto set of a model's lowerings."""

from pathlib import Path

from dfcompile.cli.endings import warn
from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.host.saved_rows import check_saved, save_rows
from dfcompile.options import ExploreOptions, RowOutputs, option, table


@table
class Saved:
    """Where the Pareto set is kept."""

    save: Path | None = option(
        "Write the Pareto set as .sqlite (table front) or .parquet.",
        more="Parquet with `pip install 'dfcompile[parquet]'`.",
    )


@table_command("explore", ExploreOptions, Saved, RowOutputs)
def explore(options: ExploreOptions, saved: Saved, outputs: RowOutputs) -> None:
    """Find the Pareto set of a model's lowerings over expansions, granularities, PEs and on-chip memory.

    What was computed before is not computed again: an exploration that was stopped goes on where it was.
    """
    check_targets((outputs.output, saved.save, outputs.html))
    check_saved(saved.save)

    from dfcompile.report.rows import check_row_format

    form = check_row_format(outputs.format, "explorations")

    from dfcompile.api.explore_model import explored

    run = explored(options, show_stage, warn=warn)
    text = run.text(form, output_width(), verbose=outputs.verbose)
    if saved.save is not None:
        save_rows(run.to_rows(), saved.save)
    write_page(outputs.html, run)
    write_text(text, outputs.output)

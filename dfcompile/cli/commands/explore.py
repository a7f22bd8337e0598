"""``dfcompile explore``: the Pareto set of a model's lowerings."""

from dfcompile.cli.endings import warn
from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options import ExploreOptions, RowOutputs


@table_command("explore", ExploreOptions, RowOutputs)
def explore(options: ExploreOptions, outputs: RowOutputs) -> None:
    """Find the Pareto set of a model's lowerings over expansions, granularities, PEs and on-chip memory.

    What was computed before is not computed again: an exploration that was stopped goes on where it was.
    """
    check_targets((outputs.output, outputs.html))

    from dfcompile.api.explore_model import explored

    run = explored(options, show_stage, warn=warn)
    text = run.text(outputs.format, output_width(), verbose=outputs.verbose)
    write_page(outputs.html, run)
    write_text(text, outputs.output)

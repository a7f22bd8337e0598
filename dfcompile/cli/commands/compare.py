"""``dfcompile compare``: what changed between reports."""

from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options.commands import CompareOptions


@table_command("compare", CompareOptions)
def compare(asked: CompareOptions) -> None:
    """Say what changed between reports of one kind: by how much, and where.

    A, B, … are files of --format json, or pages of --html; what follows A is held against it.
    """
    check_targets((asked.output, asked.html))

    from dfcompile.api import compare_reports

    run = compare_reports.compare(*asked.reports, show=show_stage)
    write_page(asked.html, run)
    write_text(run.text(asked.format, output_width()), asked.output)

"""``dfcompile compare``: what changed between reports."""

from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.host.stages import counted
from dfcompile.options.commands import CompareOptions


@table_command("compare", CompareOptions)
def compare(asked: CompareOptions) -> None:
    """Say what changed between reports of one kind: by how much, and where.

    A, B, … are files of --format json, or pages of --html; what follows A is held against it.
    """
    if len(asked.reports) < 2:
        raise UserError(f"compare: found {len(asked.reports)} reports against two or more")
    check_targets((asked.output, asked.html))

    from dfcompile.api.compare_reports import ComparisonRun
    from dfcompile.page.comparison import compare_reports
    from dfcompile.page.records import read_report

    with show_stage("reading reports"):
        read = [(str(file), read_report(file)) for file in counted(asked.reports)]
    with show_stage("comparing"):
        run = ComparisonRun(compare_reports(read), asked.reports)
    write_page(asked.html, run)
    write_text(run.text(asked.format, output_width()), asked.output)

"""``dfcompile compare``: what changed between reports."""

from pathlib import Path

import click

from dfcompile.cli.completion import complete_from
from dfcompile.cli.pages import HTML, files_alone, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, target_of
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.host.stages import counted

FORMATS = ("table", "json", "csv")


@click.command(name="compare", cls=StrictCommand)
@click.argument("reports", nargs=-1, type=click.Path(path_type=Path), metavar="A B…")
@HTML
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True,
              shell_complete=complete_from(*FORMATS), help="table, json or csv.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def compare(*, reports: tuple[Path, ...], html: Path | None, format_: str, output: Path | None) -> None:
    """Say what changed between reports of one kind: by how much, and where.

    A, B, … are files of --format json, or pages of --html; what follows A is held against it.
    """
    if len(reports) < 2:
        raise UserError(f"compare: found {len(reports)} reports against two or more")
    output = target_of(output)
    check_targets((output, html))

    from dfcompile.page.comparison import compare_reports
    from dfcompile.page.comparison_texts import comparison_text
    from dfcompile.page.reading import read_report

    with show_stage("reading reports"):
        read = [(str(file), read_report(file)) for file in counted(reports)]
    with show_stage("comparing"):
        found = compare_reports(read)
    write_page(html, lambda: comparison_text(found, "json", output_width()), files_alone(*reports))
    write_text(comparison_text(found, format_, output_width()), output)

"""The options of ``dfcompile compare``."""

from pathlib import Path

from dfcompile.options.option import option, table
from dfcompile.options.readers import as_given, word
from dfcompile.options.shared import ROW_FORMATS, html_option, output_option


@table
class CompareOptions:
    """Reports that are compared, and where what changed is written."""

    reports: tuple[Path, ...] = option(
        as_given, "Files.", default=(), metavar="A B…", is_argument=True, is_path=True, is_repeatable=True
    )
    html: Path | None = html_option()
    format: str = option(
        word(ROW_FORMATS), "table, json or csv.", default="table", choices=ROW_FORMATS, complete=ROW_FORMATS
    )
    output: Path | None = output_option()

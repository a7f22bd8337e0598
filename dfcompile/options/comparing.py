"""The options of ``dfcompile compare``."""

from pathlib import Path

from dfcompile.options.option import option, table
from dfcompile.options.readers import as_given
from dfcompile.options.shared import ROW_FORMATS, html_option, output_option, word_option


@table
class CompareOptions:
    """Reports that are compared, and where what changed is written."""

    reports: tuple[Path, ...] = option(
        as_given, "Files.", default=(), metavar="A B…", is_argument=True, is_path=True, is_repeatable=True
    )
    html: Path | None = html_option()
    format: str = word_option("table, json or csv.", ROW_FORMATS, default="table", complete=ROW_FORMATS)
    output: Path | None = output_option()

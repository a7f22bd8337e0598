"""What changed between reports: what ``dfcompile compare`` does."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar

from dfcompile.api.runs import Shown
from dfcompile.errors import UserError
from dfcompile.host.stages import counted
from dfcompile.options import ShowStage, show_nothing
from dfcompile.options.readers import File
from dfcompile.page.comparison import CHANGE_NAMES, Comparison, compare_reports, comparison_rows, comparison_table
from dfcompile.page.records import Record, read_report
from dfcompile.report.plain_values import Json


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparisonRun(Shown):
    """What changed between reports.

    Attributes:
        comparison: all changes.
        files: of reports that were read.
    """

    comparison: Comparison
    files: tuple[Path, ...] = ()
    row_names: ClassVar[Sequence[str]] = CHANGE_NAMES

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the changes as a table, the largest first."""
        del verbose
        return comparison_table(self.comparison, width)

    def to_record(self) -> dict[str, Json]:
        """Return the changes as the plain values of the JSON contract."""
        return self.comparison.record()

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per change."""
        return comparison_rows(self.comparison)

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts: figures are numbers, words or missing, all in one column."""
        return ("base", "value")

    @property
    def answer(self) -> str:
        """The report in one line."""
        return f"{len(self.comparison.changes):,} differences among {self.comparison.figures:,} figures"


def compare(*reports: Shown | File, show: ShowStage = show_nothing) -> ComparisonRun:
    """Say what changed between reports of one kind: by how much, and where.

    Args:
        reports: two or more: what calls gave back, or files of JSON or pages; what follows the first is held against
            it.
        show: gives a context that lasts as long as a stage, for showing progress.

    Raises:
        UserError: fewer than two, one that cannot be read, or reports of several kinds.
    """
    if len(reports) < 2:
        raise UserError(f"compare: found {len(reports)} reports against two or more")
    with show("reading reports"):
        read = [
            (str(one), read_report(Path(one)))
            if isinstance(one, str | PathLike)
            else (f"report {number}", Record(one.to_record()))
            for number, one in enumerate(counted(reports), 1)
        ]
    files = tuple(Path(one) for one in reports if isinstance(one, str | PathLike))
    with show("comparing"):
        return ComparisonRun(compare_reports(read), files)

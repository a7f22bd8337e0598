"""The columns that tell the results of a report apart: processing elements, chips, and the choices that differ."""

from collections.abc import Iterator, Sequence
from typing import Final

from dfcompile.report.figures import Report
from dfcompile.report.text_tables import Column

BEST: Final = "*"


def labels(report: Report) -> list[Column]:
    """Return the columns that tell results apart: the number of processing elements and the compared expansions."""
    results = report.results
    columns = [Column("PEs", tuple(str(result.pes) for result in results))]
    if report.is_comparison:
        best = {id(result) for result in report.best.values()}
        columns.append(Column("", tuple(BEST if id(result) in best else "" for result in results)))
    named = {key: tuple(result.variation.get(key, "-") for result in results) for key in report.compared}
    return [*columns, *(Column(key, names, is_text=True) for key, names in named.items())]


def chips_column(available: Sequence[int]) -> Iterator[Column]:
    """Yield the numbers of chips at hand, if results differ in them."""
    if len(set(available)) > 1:
        yield Column("chips", tuple(map(str, available)))

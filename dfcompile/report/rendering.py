"""Turns a report into the text of the format that the user asked for."""

import csv
import io
from types import MappingProxyType

from dfcompile.errors import InternalError
from dfcompile.host.printable import printable
from dfcompile.report.figures import Json, Report, to_json, to_record
from dfcompile.report.tables import report_table

AMBIGUOUS = ("gap", "lower_bound_cycles", "makespan_cycles", "utilization")  # the schedule has one, too
PREFIXES = MappingProxyType({"over_expansions": "expansions", "simulation": "simulated", "mapping": "mapping"})


def render(report: Report, format_: str, width: int, *, verbose: bool = True) -> str:
    """Return the report as ``table``, ``json`` or ``csv``; ``width`` in columns and ``verbose`` concern the table.

    Raises:
        InternalError: another format.
    """
    match format_:
        case "table":
            return report_table(report, width, verbose=verbose)
        case "json":
            return to_json(report)
        case "csv":
            return to_csv(report)
    raise InternalError(f"format {format_!r}: not one that the command line offers")


def to_csv(report: Report) -> str:
    """Return one row per result; the headings are the JSON names, which carry the units."""
    record = to_record(report)
    results = record["results"]
    assert isinstance(results, list)
    rows = [_row(result) for result in results]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(result: Json) -> dict[str, Json]:
    assert isinstance(result, dict)
    expansions = result["expansions"]
    assert isinstance(expansions, dict)
    pairs = printable(" ".join(f"{key}={name}" for key, name in expansions.items()))
    row: dict[str, Json] = {"pes": result["pes"], "expansions": pairs}
    for part in ("schedule", "over_expansions", "simulation", "mapping", "verification"):
        figures = result.get(part, {})
        assert isinstance(figures, dict)
        # A list does not fit in a cell.
        row |= {_heading(part, name): value for name, value in figures.items() if not isinstance(value, list)}
    return row


def _heading(part: str, name: str) -> str:
    return f"{PREFIXES[part]}_{name}" if part in PREFIXES and name in AMBIGUOUS else name

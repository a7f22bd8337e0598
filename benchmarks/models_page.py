"""Writes the table of every model from every source into ``docs/models.md``, between its two marks."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from benchmarks.measurement import ROOT

PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- rows: written by make models -->", "<!-- end of rows -->"
HEAD = (
    "| model | source | nodes | costed | tasks | 64 PEs | 512 PEs | 2,048 PEs "
    "| error | inputs | CPU s | peak MB | commit |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)

Record = Mapping[str, object]


def write_page(rows: Sequence[Record]) -> None:
    """Put the rows of ``benchmarks/models.json`` into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}")


def table(rows: Sequence[Record]) -> str:
    """Return the table: rows of one model stand together, its name in the first of them."""
    lines = [HEAD]
    for model, group in groupby(rows, key=lambda row: row["model"]):
        for at, row in enumerate(group):
            lines.append(f"| {'' if at else model} | {row['source']} | {' | '.join(_figures(row))} |")
    return "\n".join(lines)


def _figures(row: Record) -> list[str]:
    if row["problem"] and not row["tasks"]:
        return [str(row["problem"]).replace("|", "\\|"), *[""] * 9, _commit(row)]
    makespans = row["makespans"]
    assert isinstance(makespans, list | tuple)
    error = row["max_rel_error"]
    return [
        f"{row['nodes']:,}",
        f"{row['nodes_costed']:,}",
        f"{row['tasks']:,}",
        *(f"{cycles:,}" for cycles in makespans),
        str(row["problem"]) or "not verified" if error is None else f"{error:.1e}",
        "" if row["effect_of_inputs"] is None else f"{row['effect_of_inputs']:.1g}",
        str(row["cpu_s"]),
        f"{row['peak_mb']:,}",
        _commit(row),
    ]


def _commit(row: Record) -> str:
    return str(row["commit"])[:7]

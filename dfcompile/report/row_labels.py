"""What tells the results of a report apart: processing elements, chips, and the choices that differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dfcompile.records import replace
from dfcompile.report.figures import Report, Result
from dfcompile.report.text_tables import Column

BEST: Final = "*"


def labels(report: Report) -> list[Column]:
    """Return the columns that tell results apart: the number of processing elements and the compared expansions."""
    results = report.results
    columns = [Column("PEs", tuple(str(result.pes) for result in results))]
    if is_comparison(report):
        best = {id(result) for result in report.best.values()}
        columns.append(Column("", tuple(BEST if id(result) in best else "" for result in results)))
    keys = compared(report)
    named = (tuple(_variation(result).get(key, "-") for result in results) for key in keys)
    return [*columns, *(Column(key, names, is_text=True) for key, names in zip(keys, named, strict=True))]


def chips_column(available: Sequence[int]) -> Iterator[Column]:
    """Yield the numbers of chips at hand, if results differ in them."""
    if len(set(available)) > 1:
        yield Column("chips", tuple(map(str, available)))


def machine_of(result: Result) -> tuple[int, int]:
    """Return processing elements and chips at hand."""
    return result.pes, result.mapping.chips_available if result.mapping else 1


def is_comparison(report: Report) -> bool:
    """Return whether results of one machine differ in their choices: those of several may have been chosen."""
    counts = Counter(map(machine_of, report.results))
    return max(counts.values(), default=0) > 1 and len(compared(report)) > 0


def compared(report: Report) -> tuple[str, ...]:
    """Return what results differ in: expansions, the partitioner."""
    variations = [_variation(result) for result in report.results]
    keys = dict.fromkeys(key for variation in variations for key in variation)
    return tuple(key for key in keys if len({variation.get(key) for variation in variations}) > 1)


def _variation(result: Result) -> Mapping[str, str]:
    choice = result.schedule.choice
    return {**result.expansions, **({"options": choice} if choice else {"partition": result.schedule.partition})}


def compared_label(report: Report, result: Result) -> str:
    """Return the choices of a result in which others differ; empty if none are compared."""
    if not is_comparison(report):
        return ""
    found = {key: _variation(result).get(key, "-") for key in compared(report)}
    return " ".join(f"{key}={name}" for key, name in found.items())


def where(report: Report, result: Result) -> str:
    """Return what tells a result from the others."""
    return " ".join(word for word in (f"{result.pes} PEs", compared_label(report, result)) if word)


def of_one_chip_count(report: Report) -> Report:
    """Return the report with the results of one number of chips: a schedule is that of one chip."""
    _, first = machine_of(report.results[0])
    return replace(report, results=tuple(result for result in report.results if machine_of(result)[1] == first))

"""The results of a model's report, each named by what is not the same in all of them."""

from collections.abc import Iterator
from math import inf

from msgspec import Struct

from dfcompile.page.phrases import choices
from dfcompile.page.records import Record


class ResultRow(Struct, frozen=True):
    """A result of the report.

    Attributes:
        figures: its record.
        lowering: expansions and partitioner, as far as they differ among results.
    """

    figures: Record
    lowering: str

    @property
    def name(self) -> str:
        """Number of PEs and lowering."""
        return f"{self.figures.number('pes')} PEs {self.lowering}".strip()

    @property
    def makespan(self) -> float:
        """Cycles of the machine; infinite in a deadlock."""
        makespan = self.figures.number("makespan_cycles")
        return inf if makespan is None else makespan  # a deadlock has none

    @property
    def pes(self) -> float:
        """Processing elements."""
        return self.figures.number("pes") or 0


def result_rows(report: Record) -> tuple[ResultRow, ...]:
    """Return the results, each named by those of its choices that are not the same in all of them."""
    results = report.parts("results")
    named = [tuple(_names(result)) for result in results]
    same = frozenset.intersection(*map(frozenset, named)) if len(named) > 1 else frozenset(named[0])
    return tuple(
        ResultRow(result, " ".join(name for name in names if name and name not in same))
        for result, names in zip(results, named, strict=True)
    )


def _names(result: Record) -> Iterator[str]:
    """Yield its choices; expansions that were chosen are one lowering, whatever the number of PEs."""
    if not result.is_set("automatic.is_taken"):
        yield from choices(result, "expansions").split()
    yield result.text("schedule.partition")
    chips = result.number("mapping.chips_available")
    yield "" if chips is None else f"{chips} chips"

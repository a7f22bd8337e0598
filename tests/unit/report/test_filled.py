"""Records are filled from what has their figures."""

from enum import Enum

import pytest
from msgspec import Struct

from dfcompile.errors import InternalError
from dfcompile.report.figure import figure, filled, record


class Way(Enum):
    FAST = "fast"


class Part(Struct):
    time_ns: float


class Whole(Struct):
    is_done: bool
    way: Way
    parts: tuple[Part, ...]
    last: Part | None = None


@record()
class PartSummary:
    time_s: float = figure("of it")


@record()
class WholeSummary:
    done: bool = figure("whether it is", of="is_done")
    way: str = figure("how")
    count: int = figure("how many")
    parts: tuple[PartSummary, ...] = figure("of it")
    last: PartSummary | None = figure("of them")
    note: str = figure("of people", default="none")


def test_figures_are_attributes_of_their_names_in_seconds_and_records_within() -> None:
    whole = Whole(True, Way.FAST, (Part(2e9), Part(5e8)))

    assert filled(WholeSummary, whole, count=2) == WholeSummary(
        True, "fast", 2, (PartSummary(2.0), PartSummary(0.5)), None, "none"
    )


def test_the_first_source_that_has_a_figure_gives_it() -> None:
    assert filled(PartSummary, object(), Part(1e9), Part(2e9)) == PartSummary(1.0)


def test_a_figure_that_nothing_has_is_named() -> None:
    with pytest.raises(InternalError, match=r"WholeSummary\.count: found in none of Whole"):
        filled(WholeSummary, Whole(True, Way.FAST, ()))

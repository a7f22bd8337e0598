"""Records are filled from what has their figures."""

from enum import Enum

import pytest
from msgspec import Struct

from dfcompile.audit.comparing import audit_derived
from dfcompile.errors import InternalError, VerificationError
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


@record()
class RatioSummary:
    """Two figures and their ratio."""

    moved_bytes: int = figure("moved")
    least_bytes: int | None = figure("least")
    ratio: float | None = figure(
        "`moved_bytes / least_bytes`", of=lambda row: row.moved_bytes / row.least_bytes if row.least_bytes else None
    )


@record()
class RatiosSummary:
    """Rows of them."""

    rows: tuple[RatioSummary, ...] = figure("rows")


def test_a_figure_that_others_make_is_filled_and_audited_by_its_field_alone() -> None:
    made = filled(RatioSummary, moved_bytes=6, least_bytes=4)
    unknown = filled(RatioSummary, moved_bytes=6, least_bytes=None)

    assert (made.ratio, unknown.ratio) == (1.5, None)
    audit_derived("report", RatiosSummary((made, unknown)))
    with pytest.raises(VerificationError, match=r"report.rows\[1\].ratio: found 1.6 against 1.5 recomputed"):
        audit_derived("report", RatiosSummary((made, RatioSummary(6, 4, 1.6))))

"""Comparisons of the audit: a reported figure with its recomputed value, or with a reported bound."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from dfcompile.errors import VerificationError
from dfcompile.report.figure import derived_figures
from dfcompile.report.mapping_figures import MappingSummary, PerfectStreamsSummary

if TYPE_CHECKING:  # reports of models are audited without importing the records of designs
    from dfcompile.report.design.figures import SearchSummary

Real: TypeAlias = float | Fraction
Number: TypeAlias = bool | int | float | Fraction | None
Text: TypeAlias = str | tuple[str, ...] | tuple[int, ...]
Bounded: TypeAlias = "MappingSummary | PerfectStreamsSummary | SearchSummary"

Row = TypeVar("Row")
Expected = TypeVar("Expected")

NEAR_EXACT = 1e-13  # relative tolerance of floats from a few operations, recomputed in another order
ROUNDING = 1e-9  # relative tolerance of floats from any number of operations, recomputed in another order


def expect(where: str, reported: Number, expected: Number, tolerance: float = 0.0) -> None:
    """Check that a reported figure equals its recomputed value.

    Args:
        where: path of the figure in the report, such as ``results[0].schedule.io_bytes``.
        reported: value in the report.
        expected: recomputed value.
        tolerance: relative; 0 for exact equality.

    Raises:
        VerificationError: they differ in value or kind (number, truth value, ``None``), or one is NaN.
    """
    if not _agree(reported, expected, tolerance):
        raise VerificationError(f"{where}: found {reported} against {expected} recomputed")


def audit_derived(where: str, report: object) -> None:
    """Check every figure that is defined by other figures of its record, such as a ratio of two of them.

    Raises:
        VerificationError: naming the figure.
    """
    for path, reported, expected in derived_figures(report, where):
        expect(path, reported, expected)  # type: ignore[arg-type]  # a figure is a number, or None


def expect_figures(where: str, part: object, tolerance: float = 0.0, /, **expected: Number | Text) -> None:
    """Check several figures of one record of the report: numbers as `expect` does, texts for equality.

    Args:
        where: path of the record in the report.
        part: the record, with an attribute for each expected figure.
        tolerance: of numbers, relative; 0 for exact equality.
        expected: recomputed values, by attribute.

    Raises:
        VerificationError: naming the first figure that differs.
    """
    for name, value in expected.items():
        if isinstance(value, str | tuple):
            reported = getattr(part, name)
            if reported != value:
                raise VerificationError(f"{where}.{name}: found {reported!r} against {value!r} recomputed")
        else:
            expect(f"{where}.{name}", getattr(part, name), value, tolerance)


def expect_rows(where: str, rows: Sequence[Row], expected: Sequence[Expected]) -> Iterator[tuple[str, Row, Expected]]:
    """Check the number of rows of a list; then yield, for each, its path, the row and its recomputed counterpart.

    Args:
        where: path of the list in the report.
        rows: the list in the report.
        expected: recomputed, in the same order.

    Raises:
        VerificationError: there are more rows than expected, or fewer.
    """
    expect(f"{where}: their number", len(rows), len(expected))
    for number, (row, recomputed) in enumerate(zip(rows, expected, strict=True)):
        yield f"{where}[{number}]", row, recomputed


def expect_at_least(where: str, reported: Real, bound: Real, bound_name: str, slack: float = 0.0) -> None:
    """Check that a reported figure is not below its lower bound.

    Args:
        where: path of the figure in the report.
        reported: value in the report.
        bound: the lower bound.
        bound_name: how errors call the bound, such as ``lower_bound_cycles``.
        slack: for rounding of floats, relative to the bound.

    Raises:
        VerificationError: it is below, or NaN.
    """
    least = float(bound) * (1 - slack) if slack else bound  # without slack: exact for integers of any size
    if not reported >= least:
        raise VerificationError(f"{where}: found {reported} against at least {bound}, {bound_name}")


def expect_near(where: str, reported: float, expected: float, slack: float) -> None:
    """Check that a reported difference of floats equals its recomputed value, with an absolute tolerance.

    Args:
        where: path of the figure in the report.
        reported: value in the report.
        expected: recomputed value.
        slack: absolute tolerance, in the figure's unit: the rounding of what was subtracted.

    Raises:
        VerificationError: it is farther away, or NaN.
    """
    if isinstance(reported, bool) or not abs(reported - expected) <= slack:
        raise VerificationError(f"{where}: found {reported} against {expected} recomputed")


def expect_bound(where: str, summary: Bounded, time_s: float, bound_s: float, *, is_optimal: bool) -> None:
    """Check the bound of a time and the gap to it, and that the time is not below the bound.

    Args:
        where: path of the record in the report.
        summary: the record, with the bound, the gap and the flag ``optimal``.
        time_s: recomputed time.
        bound_s: recomputed bound.
        is_optimal: whether it is proved that nothing is faster.

    Raises:
        VerificationError: naming the figure.
    """
    expect_figures(where, summary, ROUNDING, optimal=is_optimal, bound_time_s=bound_s)
    expect_near(f"{where}.gap", summary.gap, time_s / bound_s - 1 if bound_s else 0.0, 2 * ROUNDING)
    expect_at_least(f"{where}: the time", time_s, summary.bound_time_s, "bound_time_s", ROUNDING)


def _agree(reported: Number, expected: Number, tolerance: float) -> bool:
    if reported is None or expected is None:
        return reported is expected
    if isinstance(reported, bool) != isinstance(expected, bool):
        return False
    if reported == expected:
        return True
    return tolerance > 0 and math.isclose(reported, expected, rel_tol=tolerance)

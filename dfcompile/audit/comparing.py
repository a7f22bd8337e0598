"""How a figure of the report is held against its value computed anew, or against a bound that stands beside it."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from dfcompile.errors import VerificationError
from dfcompile.report.figure import derived_figures
from dfcompile.report.mapping_figures import MappingSummary, PerfectStreamsSummary

if TYPE_CHECKING:  # a model's run needs nothing of designs
    from dfcompile.report.design.figures import SearchSummary

Number: TypeAlias = bool | int | float | Fraction | None
Text: TypeAlias = str | tuple[str, ...] | tuple[int, ...]
Bounded: TypeAlias = "MappingSummary | PerfectStreamsSummary | SearchSummary"

Row = TypeVar("Row")
Other = TypeVar("Other")

MULTIPLIED = 1e-13  # of floats that few operations give, in another order, as a part of the larger one
ROUNDING = 1e-9  # of floats that two orders of operations give, as a part of the larger one


def expect(where: str, found: Number, expected: Number, tolerance: float = 0.0) -> None:
    """Refuse a figure that is not what it is computed anew to be.

    Args:
        where: path of the figure in the report, such as ``results[0].schedule.io_bytes``.
        found: in the report.
        expected: computed anew.
        tolerance: of numbers, as a part of the larger one; 0: they are equal.

    Raises:
        VerificationError: they differ, or one of them is ``None``, a truth value or not a number and the other is not.
    """
    if not _agree(found, expected, tolerance):
        raise VerificationError(f"{where}: found {found} against {expected} recomputed")


def audit_derived(where: str, report: object) -> None:
    """Refuse a figure that is not what the other figures of its record make.

    Raises:
        VerificationError: naming the figure.
    """
    for path, found, expected in derived_figures(report, where):
        expect(path, found, expected)  # type: ignore[arg-type]  # a figure is a number, or None


def expect_figures(where: str, part: object, tolerance: float = 0.0, /, **expected: Number | Text) -> None:
    """Refuse the first figure of a part of the report that is not what it is computed anew to be.

    Args:
        where: path of the part in the report.
        part: of the report, with an attribute of each name.
        tolerance: of numbers, as a part of the larger one; 0: they are equal.
        expected: computed anew, by name.

    Raises:
        VerificationError: as `expect`, or a text is another one.
    """
    for name, value in expected.items():
        if isinstance(value, str | tuple):
            found = getattr(part, name)
            if found != value:
                raise VerificationError(f"{where}.{name}: found {found!r} against {value!r} found anew")
        else:
            expect(f"{where}.{name}", getattr(part, name), value, tolerance)


def expect_rows(where: str, found: Sequence[Row], expected: Sequence[Other]) -> Iterator[tuple[str, Row, Other]]:
    """Yield the path of each row of a list, the row, and what it is of; refuse another number of rows.

    Args:
        where: path of the list in the report.
        found: in the report.
        expected: computed anew, in the same order.

    Raises:
        VerificationError: there are more, or fewer.
    """
    expect(f"{where}: their number", len(found), len(expected))
    for number, (row, other) in enumerate(zip(found, expected, strict=True)):
        yield f"{where}[{number}]", row, other


def expect_at_least(
    where: str, found: float | Fraction, bound: float | Fraction, what: str, slack: float = 0.0
) -> None:
    """Refuse a figure below a bound on it.

    Args:
        where: path of the figure in the report.
        found: in the report.
        bound: that it cannot fall below.
        what: the bound is, such as ``lower_bound_cycles``.
        slack: of floats, as a part of the bound.

    Raises:
        VerificationError: it is below, or not a number.
    """
    least = float(bound) * (1 - slack) if slack else bound  # without slack numbers of any size are exact
    if not found >= least:
        raise VerificationError(f"{where}: found {found} against at least {bound}, {what}")


def expect_near(where: str, found: float, expected: float, slack: float) -> None:
    """Refuse a difference of floats that is not what it is computed anew to be.

    Args:
        where: path of the figure in the report.
        found: in the report.
        expected: computed anew.
        slack: that rounding may make, in the figure's own unit: a part of what was subtracted.

    Raises:
        VerificationError: it is farther away, or not a number.
    """
    if isinstance(found, bool) or not abs(found - expected) <= slack:
        raise VerificationError(f"{where}: found {found} against {expected} recomputed")


def expect_bound(where: str, summary: Bounded, time_s: float, bound_s: float, *, is_optimal: bool) -> None:
    """Refuse a bound on a time that is not what it is computed anew to be, or a gap; or a time below the bound.

    Args:
        where: path of the part in the report.
        summary: the part.
        time_s: computed anew.
        bound_s: the same.
        is_optimal: whether the bound is attained, or nothing else is faster.

    Raises:
        VerificationError: naming the figure.
    """
    expect_figures(where, summary, ROUNDING, optimal=is_optimal, bound_time_s=bound_s)
    expect_near(f"{where}.gap", summary.gap, time_s / bound_s - 1 if bound_s else 0.0, 2 * ROUNDING)
    expect_at_least(f"{where}: the time", time_s, summary.bound_time_s, "bound_time_s", ROUNDING)


def _agree(found: Number, expected: Number, tolerance: float) -> bool:
    if found is None or expected is None:
        return found is expected
    if isinstance(found, bool) != isinstance(expected, bool):
        return False
    if found == expected:
        return True
    return tolerance > 0 and math.isclose(found, expected, rel_tol=tolerance)

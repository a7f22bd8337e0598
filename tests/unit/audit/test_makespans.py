"""Makespans of a report: cycles of its twelve digits, rounded up."""

import pytest

from dfcompile.audit.reports import audit_makespan
from dfcompile.errors import VerificationError


@pytest.mark.parametrize(
    ("reported", "cycles"), [(0, 0.0), (13, 12.5), (100, 100.0 + 1e-11), (1_177_363_250_050, 1_177_363_250_047.6)]
)
def test_a_makespan_is_held_as_far_as_its_digits_tell_it(reported: int, cycles: float) -> None:
    audit_makespan("makespan", reported, cycles)


@pytest.mark.parametrize(("reported", "cycles"), [(12, 12.5), (999_999_999_998, 999_999_999_999.0)])
def test_one_cycle_less_is_an_error(reported: int, cycles: float) -> None:
    with pytest.raises(VerificationError, match="makespan: found"):
        audit_makespan("makespan", reported, cycles)

"""Whatever number of a report is wrong, the audit refuses the report."""

import pytest

from dfcompile.errors import VerificationError
from tests.mutants.audited_reports import Audited, audited_reports
from tests.mutants.fields import FieldMutant, field_mutants, numeric_fields

NOT_YET = (
    "results[].mapping.ideal.solver_s",
    "results[].schedule.steady_error",
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audited, ...]:
    return audited_reports(tmp_path_factory.mktemp("reports"))


def test_what_is_right_passes(reports: tuple[Audited, ...]) -> None:
    for each in reports:
        each.audit(each.report)


def test_any_other_number_is_refused(reports: tuple[Audited, ...]) -> None:
    survived = []
    reached = set()
    for each in reports:
        for mutant in field_mutants(each.report):
            reached.add(mutant.field)
            if not mutant.field.startswith(NOT_YET) and passes(each, mutant):
                survived.append(f"{each.name}: {mutant.place} {mutant.change}")

    assert survived == []
    assert {field for field in numeric_fields() if not field.startswith(NOT_YET)} - reached == set()


def passes(audited: Audited, mutant: FieldMutant) -> bool:
    try:
        audited.audit(mutant.report)
    except VerificationError:
        return False
    return True

"""Whatever number of a report is wrong, the audit refuses the report."""

import pytest

from tests.mutants.audited_reports import Audited, audited_reports
from tests.mutants.field_campaign import field_campaign


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audited, ...]:
    return audited_reports(tmp_path_factory.mktemp("reports"))


def test_what_is_right_passes(reports: tuple[Audited, ...]) -> None:
    for each in reports:
        each.audit(each.report)


def test_any_other_number_is_refused(reports: tuple[Audited, ...]) -> None:
    found = field_campaign(reports, every=False)

    assert found.survivors == ()
    assert found.missed == frozenset()

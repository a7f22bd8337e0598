"""How many reports with one wrong number the audit refuses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dfcompile.errors import VerificationError
from dfcompile.report.figures import Report
from tests.mutants.audited_reports import Audited, audited_reports
from tests.mutants.fields import FieldMutant, field_mutants, numeric_fields

MEASURED = ("results[].mapping.perfect_streams.solver_s",)  # a time of this run: nothing tells what it was


@dataclass(frozen=True, slots=True)
class FieldCampaign:
    """What came of all mutants.

    Attributes:
        fields: of the schema that a mutant changed.
        missed: fields of the schema that no report has.
        mutants: their number.
        survivors: reports and places in them, with what was done to the number.
    """

    fields: frozenset[str]
    missed: frozenset[str]
    mutants: int
    survivors: tuple[str, ...]


def field_campaign(reports: Sequence[Audited], *, every: bool) -> FieldCampaign:
    """Audit every mutant of some reports.

    Args:
        reports: as they leave.
        every: whether all items of lists are changed, or the first and the last alone.
    """
    fields, mutants, survivors = set[str](), 0, list[str]()
    for audited, mutant in _mutants(reports, every=every):
        fields.add(mutant.field)
        mutants += 1
        if is_accepted(audited, mutant):
            survivors.append(f"{audited.name}: {mutant.place} {mutant.change}")
    missed = set(numeric_fields()) - set(MEASURED) - fields
    return FieldCampaign(frozenset(fields), frozenset(missed), mutants, tuple(survivors))


def _mutants(reports: Sequence[Audited], *, every: bool) -> Iterator[tuple[Audited, FieldMutant[Report]]]:
    for audited in reports:
        for mutant in field_mutants(audited.report, every=every):
            if mutant.field not in MEASURED:
                yield audited, mutant


def is_accepted(audited: Audited, mutant: FieldMutant[Report]) -> bool:
    """Return whether the audit of a report accepts a wrong one."""
    try:
        audited.audit(mutant.report)
    except VerificationError:
        return False
    return True


def whole_campaign() -> FieldCampaign:
    """Make the reports, and audit every mutant of them."""
    with TemporaryDirectory(prefix="fields-") as folder:
        return field_campaign(audited_reports(Path(folder)), every=True)

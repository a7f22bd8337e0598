"""Whatever number of a report on a design is wrong, the audit refuses the report."""

import random
from collections.abc import Callable

import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.machine.system import Placement, PmuGrid
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.design.figures import DesignReport
from dfcompile.report.plain_values import to_json
from tests.locations import DESIGNS
from tests.mutants.fields import field_mutants, numeric_fields
from tests.unit.audit.audited_designs import AuditedDesign, audited
from tests.unit.dfmodel_backend.pmu_designs import random_design

TIMES_THAT_PASSED = ("search.solver_s",)
SEED = 5  # three kernels that exchange, and fit a small grid


def on_a_grid() -> AuditedDesign:
    design = random_design(random.Random(SEED), 3)
    grid = PmuGrid(20, 300.0, 8, 5, Placement.ROWWISE)
    return audited(replace(design, machine=replace(design.machine, pmu=grid)))


def transform() -> AuditedDesign:
    return audited(read_design(DESIGNS / "fft_a100_1024.txt"))


def decoding() -> AuditedDesign:
    return audited(read_design(DESIGNS / "serve_gpt3_decode_genz_f10_1x.txt"), ORIGINAL)


@pytest.mark.parametrize("make", [on_a_grid, transform, decoding])
def test_any_other_number_is_refused(make: Callable[[], AuditedDesign]) -> None:
    found = make()
    found.audit(found.report)
    shown = to_json(found.report)
    survived = [
        f"{mutant.place} {mutant.change}"
        for mutant in field_mutants(found.report)
        if mutant.field not in TIMES_THAT_PASSED and to_json(mutant.report) != shown and passes(found, mutant.report)
    ]

    assert survived == []


def test_all_numbers_are_tried() -> None:
    reached = {mutant.field for make in (on_a_grid, transform) for mutant in field_mutants(make().report)}

    assert set(numeric_fields(DesignReport)) - reached == set()


def passes(found: AuditedDesign, report: DesignReport) -> bool:
    try:
        found.audit(report)
    except VerificationError:
        return False
    return True

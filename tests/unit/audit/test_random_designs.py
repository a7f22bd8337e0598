"""Reports on random designs are what the audit finds anew: networks, pipelines, memory units, copies, open degrees."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.machine.system import Link
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import UserError
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.audit.audited_designs import AuditedDesign, audited
from tests.unit.dfmodel_backend.check.test_network_checker import compatibilities, networked
from tests.unit.dfmodel_backend.designs import designs
from tests.unit.dfmodel_backend.fusion.test_pipeline import pipelines
from tests.unit.dfmodel_backend.pmu_designs import random_design

FLAWS = st.sampled_from([RIGHT, ORIGINAL])
TRANSFORM = read_design(DESIGNS / "fft_a100_1024.txt")


def passed(design: Design, compatibility: Compatibility) -> AuditedDesign:
    """Return the report on a design if there is a solution; it passes its audit."""
    try:
        found = audited(design, compatibility)
    except UserError:
        assume(False)
    found.audit(found.report)
    return found


@examples(40)
@given(networked(), compatibilities())
def test_networks(design: Design, compatibility: Compatibility) -> None:
    passed(design, compatibility)


@examples(40)
@given(st.integers(0, 2**40), FLAWS)
def test_memory_units(seed: int, compatibility: Compatibility) -> None:
    found = passed(random_design(random.Random(seed), 4), compatibility)

    for one in found.report.configurations:
        own = sum(kernel.dram_bytes for kernel in found.report.kernels if kernel.configuration == one.configuration)
        assert own == pytest.approx(found.solution.figures.steps[one.configuration].dram_bytes)


@examples(40)
@given(pipelines(), FLAWS)
def test_pipelines(design: Design, compatibility: Compatibility) -> None:
    figures = passed(design, compatibility).report.figures
    parts = figures.dram_parts_bytes

    in_use = parts.weights + parts.gradients + parts.optimizer_states + parts.activations_in_flight + parts.tables
    assert in_use + parts.waiting_tensors == pytest.approx(figures.dram_bytes)


@examples(40)
@given(designs(), st.sampled_from([1, 2, 4, 8]), st.sampled_from(["r", "sw"]), st.data(), FLAWS)
def test_open_degrees(
    design: Design, chips: int, shape: str, data: st.DataObject, compatibility: Compatibility
) -> None:
    links = tuple(Link(shape, count, 30.0, name, 0.1) for name, count in (("TP", 0), ("PP", 0), ("DP", 1)))
    sizes = st.sampled_from([0, 1, 2])
    batch = replace(
        design.execution.batch, layers=4, global_batch=8, micro_batch=data.draw(sizes), tile=data.draw(sizes)
    )
    machine = replace(design.machine, chips=chips, links=links, topology="_".join([shape] * 3))
    passed(replace(design, machine=machine, execution=replace(design.execution, batch=batch)), compatibility)


@pytest.mark.parametrize("copies", [2, 3])
def test_copies_work_side_by_side(copies: int) -> None:
    """Each has chips and a batch of its own: as well used, in the same time."""
    batch = replace(TRANSFORM.execution.batch, copies=copies)
    machine = replace(TRANSFORM.machine, chips=TRANSFORM.machine.chips * copies)
    several = replace(TRANSFORM, machine=machine, execution=replace(TRANSFORM.execution, batch=batch))
    one, all_of_them = (passed(design, RIGHT).report.figures for design in (TRANSFORM, several))

    assert all_of_them.time_s == one.time_s
    assert all_of_them.utilization == pytest.approx(one.utilization)
    assert all_of_them.flop == copies * one.flop

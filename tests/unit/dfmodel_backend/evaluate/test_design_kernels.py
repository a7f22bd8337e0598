"""What each kernel of a design does: with those of its configuration it adds up to that."""

import numpy as np
import pytest

from dfcompile.api.solve_design import solve
from dfcompile.dfmodel_backend.evaluate.designs import design_kernel_figures
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from tests.locations import DESIGNS

FILES = ("fft_a100_1024", "hpl_h100_2dtorus_1024", "serve_gpt3_prefill_genz_f10_4x", "mamba_scan_256k_rdu")


@pytest.mark.parametrize("name", FILES)
def test_kernels_of_a_configuration_add_up_to_it_and_no_roof_is_exceeded(name: str) -> None:
    run = solve(DESIGNS / f"{name}.txt")
    solution, report = run.solution, run.report
    model = DesignModel(
        solution.design, solution.decision.sharding, solution.decision.tiles, solution.options.compatibility
    )
    found = design_kernel_figures(model, solution.decision, solution.figures.steps)
    place = [solution.decision.configs[share.kernel.id] for share in model.shares]

    for number, step in enumerate(solution.figures.steps):
        own = [one for one, configuration in zip(found, place, strict=True) if configuration == number]
        inside = np.array([[configuration == number for configuration in place]])
        _, runs = model.tiles_of(inside)
        assert sum(one.dram_bytes for one in own) == pytest.approx(runs[0] * step.dram_bytes)
        assert {one.time_ns for one in own} == {step.time_ns}
        assert {one.bound_by for one in own} == {step.bound_by}
        assert sum(one.flop for one in own) <= report.figures.chip_flop_per_s * step.time_ns * 1e-9 * (1 + 1e-9)
        assert sum(one.dram_bytes for one in own) <= report.figures.dram_bytes_per_s * step.time_ns * 1e-9 * (1 + 1e-9)
    assert [one.name for one in report.kernels] == [share.kernel.name for share in model.shares]
    assert [one.flop for one in report.kernels] == [one.flop for one in found]

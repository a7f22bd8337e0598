"""The checker rejects every damaged figure of a configuration, too small or too large."""

import pytest

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.solved_designs import solved_design

FIGURES = ("compute_ns", "memory_ns", "network_ns", "time_ns", "dram_bytes", "sram_bytes")
# cores split between kernels, a given part of the peak
NAMES = ("llm_175B_fwd_sramdram_mm", "serve_gpt3_prefill_genz_f10_4x")


@pytest.fixture(scope="module", params=NAMES)
def solution(request: pytest.FixtureRequest) -> DesignSolution:
    return solved_design(request.param)


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize("figure", FIGURES)
def test_damaged_figures_are_rejected(solution: DesignSolution, figure: str, factor: float) -> None:
    check_design(solution.design, solution.decision, solution.figures, RIGHT)
    first, *others = solution.figures.steps
    damaged = replace(first, **{figure: getattr(first, figure) * factor})

    with pytest.raises(VerificationError, match="configuration 0: "):
        check_design(solution.design, solution.decision, replace(solution.figures, steps=(damaged, *others)), RIGHT)


def test_a_kernel_at_another_place_is_noticed(solution: DesignSolution) -> None:
    number = solution.design.kernels[0].id
    moved = replace(solution.decision, configs={**solution.decision.configs, number: 99})

    with pytest.raises(VerificationError, match="kernel 'Add_Prev_Layer': found in configuration 99"):
        check_design(solution.design, moved, solution.figures, RIGHT)

"""Times of solved designs, accepted by the checker."""

from functools import cache

import pytest

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem, configs_of
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import DesignOptions, MappingOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.records import replace
from tests.locations import DESIGNS

RELATIVE = 1e-6
TOO_SLOW = float("inf")
OLD = replace(
    ORIGINAL,
    all_reduce_factor=2,
    periodic_factor=2,
    network_is_sum=True,
    sram_of_other_edges=False,
    streams_read_once=True,
)


@cache
def solved_design(name: str, compatibility: Compatibility = RIGHT) -> DesignSolution:
    """Return the solution of a published design, made once for all tests."""
    return solve_design(read_design(DESIGNS / f"{name}.txt"), DesignOptions(compatibility=compatibility))


def solved_ns(model: DesignModel, solver: str) -> float:
    found = find_solver(solver).solve(FusionProblem(model, MappingOptions(solver=solver)))
    if found.chain is None:
        return TOO_SLOW
    decision = Decision(model.sharding, model.tiles, configs_of(model, found.chain))
    figures = figures_of(model, decision)
    check_design(model.design, decision, figures, model.compatibility)
    assert figures.step_ns == pytest.approx(found.time_ns, rel=RELATIVE)
    return figures.step_ns

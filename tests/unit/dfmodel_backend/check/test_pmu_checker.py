"""Figures of configurations with memory units: the independent checker accepts them, and refuses fewer units."""

import random
from functools import cache

import pytest

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.pmu_designs import random_design

RELATIVE = 1e-9


@cache
def solutions(solver: str) -> tuple[DesignSolution | None, ...]:
    found: list[DesignSolution | None] = []
    for seed in range(16):
        rng = random.Random(seed)
        options = DesignOptions(solver=solver, compatibility=rng.choice([RIGHT, ORIGINAL]))
        try:
            found.append(solve_design(random_design(rng, 3), options))
        except InfeasibleError:
            found.append(None)
    return tuple(found)


def test_solved_designs_are_accepted_and_solvers_agree() -> None:
    by_path, by_flow = solutions("dp"), solutions("highs")

    assert sum(found is not None for found in by_path) > 5
    for one, other in zip(by_path, by_flow, strict=True):
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        check_design(one.design, one.decision, one.figures, one.options.compatibility)
        check_design(other.design, other.decision, other.figures, other.options.compatibility)
        assert one.figures.batch_ns == pytest.approx(other.figures.batch_ns, rel=RELATIVE)


def test_fewer_units_of_a_tensor_are_refused() -> None:
    refused = 0
    for found in solutions("dp"):
        steps = () if found is None else found.figures.steps
        for number, step in enumerate(steps):
            if found is None or step.units is None or not step.units.weights or found.options.compatibility != RIGHT:
                continue
            kernel, count = next(iter(step.units.weights.items()))
            units = replace(step.units, weights={**step.units.weights, kernel: count - 1})
            wrong = replace(
                found.figures, steps=(*steps[:number], replace(step, units=units), *steps[number + 1 :])
            )  # fmt: skip
            with pytest.raises(VerificationError, match=f"found {count - 1} PMUs against {count}"):
                check_design(found.design, found.decision, wrong, found.options.compatibility)
            refused += 1
    assert refused > 1

"""The shortest path that evaluates few sets with memory units is that of all sets, evaluated one by one."""

import random

import pytest

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver
from dfcompile.dfmodel_backend.fusion.solvers import path as pmu_chain
from dfcompile.dfmodel_backend.fusion.solvers.path import least_chain
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, set_limits
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import SetLimits, arcs_of
from dfcompile.dfmodel_backend.options import MappingOptions
from tests.examples import rounds
from tests.unit.dfmodel_backend.pmu_designs import random_model


def test_few_sets_are_evaluated_and_the_chain_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    settled = []

    def counted(model: DesignModel, members: Members, *, are_least: bool = False) -> SetLimits:
        settled.extend([] if are_least else [len(members)])
        return set_limits(model, members, are_least=are_least)

    monkeypatch.setattr(pmu_chain, "set_limits", counted)
    solved = sets = 0
    seeds = range(rounds(400))
    for seed in seeds:
        rng = random.Random(seed)
        problem = FusionProblem(random_model(rng, 6, rng.choice([RIGHT, ORIGINAL])))
        lattice, _ = problem.shape.considered(10_000)
        arcs = arcs_of(problem.shape, lattice, problem.may_grow)

        expected_ns, expected = least_chain(arcs, arc_times(problem.model, arcs), problem.shape)
        time_ns, chain = problem.least_chain(arcs)

        assert chain == expected, seed
        assert time_ns == pytest.approx(expected_ns, rel=1e-12), seed
        sets += len(arcs.sets)
        solved += chain is not None
    assert solved > len(seeds) / 4
    assert sum(settled) < sets / 5


def test_bounds_leave_out_no_set_and_none_is_slower() -> None:
    below = 0
    seeds = range(rounds(150))
    for seed in seeds:
        rng = random.Random(seed)
        model = random_model(rng, 5, rng.choice([RIGHT, ORIGINAL]))
        problem = FusionProblem(model)
        lattice, _ = problem.shape.considered(10_000)
        members = arcs_of(problem.shape, lattice, problem.may_grow).members

        exact, bounds = set_limits(model, members), set_limits(model, members, are_least=True)

        assert ((exact.weight_tiles > 0) == (bounds.weight_tiles > 0)).all(), seed
        assert (bounds.compute_ns <= exact.compute_ns).all(), seed
        below += int((bounds.compute_ns < exact.compute_ns).sum())
    assert below > len(seeds) / 8


@pytest.mark.parametrize("solver", ["cbc", "highs"])
def test_arc_flow_with_memory_units_is_as_fast_as_the_shortest_path(solver: str) -> None:
    solved = 0
    for seed in range(25):
        model = random_model(random.Random(seed), 6)
        expected = find_solver("dp").solve(FusionProblem(model))

        found = find_solver(solver).solve(FusionProblem(model, MappingOptions(solver=solver)))

        assert (found.chain is None) == (expected.chain is None), seed
        assert found.time_ns == pytest.approx(expected.time_ns, rel=1e-9), seed
        solved += found.chain is not None and found.solver is solver
    assert solved > 5

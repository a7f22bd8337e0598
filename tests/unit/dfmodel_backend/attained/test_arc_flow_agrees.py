"""The arc flow, an integer program, finds the chains of least attained time that the search of configurations finds."""

from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.dfmodel_backend import Overlap, System, TaskModel
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.attained.search import possible_arcs
from dfcompile.dfmodel_backend.fusion.solvers.built_in import fuse_by_arc_flow
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Rank
from dfcompile.dfmodel_backend.kernel_sets import FusionShape
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome
from dfcompile.errors import InfeasibleError
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.dfmodel_backend.attained.test_fastest_chain import machines, model_of

FEW = DagShape(max_scopes=4, max_members=2)


@dataclass(frozen=True)
class Attained:
    """What sets of kernels take, all of them replayed."""

    model: TaskModel
    tie_ns: float = 1e-6

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""
        return 1 / self.model.system.dram_gb_per_s

    def cost(self, units: int) -> tuple[float, int]:
        """Return time in ns and DRAM bytes of a set."""
        found = self.model.configuration(units)
        return (inf, 0) if found is None else (found.time_ns, found.dram_bytes)

    def rank(self, chain: Chain) -> Rank:
        """Return time in ns, DRAM bytes and configurations."""
        costs = [self.cost(units) for units in chain if units]
        return sum(time for time, _ in costs), sum(size for _, size in costs), len(costs)


@examples(15)
@given(canonical_dags(FEW), machines)
def test_arc_flow_over_replayed_sets_gives_the_time_that_the_search_gives(dag: CanonicalDag, system: System) -> None:
    model = model_of(dag, system, Overlap.PERFECT_OVERLAP)
    assume(model.units.count)
    try:
        found = map_tasks(model)
    except InfeasibleError:
        assume(False)
    attained = Attained(model)
    count = model.units.count
    shape = FusionShape(model.units.predecessors, ((1 << count) - 1,) * count, count)
    arcs, is_complete = possible_arcs(shape, lambda _units: True)
    assume(is_complete)
    costs = [attained.cost(arcs.mask(arc)) for arc in range(len(arcs.added))]
    time, dram = np.array(costs, float).reshape(-1, 2).T

    chain, outcome = fuse_by_arc_flow(
        arcs, PathCosts(time, dram), np.isfinite(time), shape, MilpOptions(MilpSolver.CBC), attained
    )

    assert outcome is Outcome.OPTIMAL
    assert chain is not None
    assert attained.rank(chain)[0] == pytest.approx(found.time_s * 1e9, rel=1e-9)

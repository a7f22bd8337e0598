"""Fusion of a graph's kernels into configurations by the solver that was asked for, within its budget."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import or_

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.graphs.arcs import GraphArcs, graph_arcs
from dfcompile.dfmodel_backend.fusion.graphs.sets import GraphSets
from dfcompile.dfmodel_backend.fusion.registry import find_solver
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathArcs, PathCosts, Rank, least_chain
from dfcompile.dfmodel_backend.fusion.solvers.shortest_path import shortest_path
from dfcompile.dfmodel_backend.fusion.terms import FusionTerms
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap


def fuse_graph(sets: GraphSets, options: MappingOptions, solver: FusionSolver | None = None) -> Fusion:
    """Return the fastest chain of configurations, or none if nothing fits SRAM, DRAM and cores.

    Of equally fast ones it is that with the fewest DRAM bytes, then with the fewest configurations. Budgets count work,
    never time. If the down-sets or pairs of them are too many, the chain is the best along a few topological orders; if
    an integer program is too large, or stops at its limit of nodes or time without a solution, the shortest path is
    taken instead.

    Args:
        sets: of kernels, with costs and limits.
        options: of the mapping.
        solver: None: the one that the options name.

    Raises:
        UserError: there is no such solver.
        PluginError: a plug-in's solver failed.
        InternalError: a solver of ours failed.
    """
    return (solver or find_solver(options.solver)).solve(GraphProblem(sets, options))


@dataclass(frozen=True)
class GraphProblem:
    """The kernels of a graph as a `FusionProblem`."""

    sets: GraphSets
    options: MappingOptions

    @property
    def shape(self) -> FusionShape:
        """Precedence; every configuration may hold every kernel."""
        return self.sets.shape

    @property
    def overlap(self) -> Overlap:
        """Of the options."""
        return self.sets.overlap

    @property
    def counted(self) -> str:
        """All of compute, memory and network."""
        return self.sets.counted

    @property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``."""
        return self.sets.least_parts

    @property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        return self.sets.tie_ns

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""
        return self.sets.ns_per_byte

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
        return self.sets.set_times(sets)

    def chain_times(self, chain: Chain) -> Column:
        """Return the time of each set of a chain, infinite if it breaks a limit of cores, SRAM or DRAM."""
        model = self.sets.model
        done = (0, *accumulate(chain, or_))
        fits = [not kernels or model.fits_dram(before, kernels) for before, kernels in zip(done, chain, strict=False)]
        return np.where(fits, self.set_times(chain), np.inf)

    def rank(self, chain: Chain) -> Rank:
        """Return time, DRAM bytes and configurations of a chain."""
        return self.sets.rank(chain)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel."""
        return self.sets.terms()

    def may_solve(self, variables: int) -> bool:
        """Return whether an integer program of so many variables may be solved."""
        return variables <= self.options.max_variables

    @cached_property
    def _listed(self) -> GraphArcs | None:
        lattice = self.shape.lattice(self.options.max_down_sets)
        if lattice is None:
            return None
        return graph_arcs(self.sets.model, tuple(lattice), self.shape.most_kernels, self.options.max_arcs)

    def listed(self) -> GraphArcs | None:
        """Return all possible configurations, or None if they are too many."""
        return self._listed

    def listed_along_orders(self) -> GraphArcs:
        """Return the configurations along a few topological orders, shorter ones where those are too many."""
        lattice = tuple(self.shape.intervals())
        most, budget = self.shape.most_kernels, self.options.max_arcs
        arcs = graph_arcs(self.sets.model, lattice, most, budget)
        while arcs is None:
            most = max(1, min(most, len(self.shape.predecessors)) // 2)
            arcs = graph_arcs(self.sets.model, lattice, most, budget if most > 1 else len(lattice) ** 2)
        return arcs

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations."""
        assert isinstance(arcs, GraphArcs)
        return PathCosts(arcs.time_ns, arcs.dram_bytes, self.tie_ns)

    def least_chain(self, arcs: PathArcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of listed configurations, and the chain, or None if there is none."""
        return least_chain(arcs, self.costs_of(arcs), self.shape)

    def instead(self) -> Fusion:
        """Return the shortest path."""
        return shortest_path(self)

"""Fusion of kernels into configurations by the solver that was asked for."""

from functools import cached_property

from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pair_arcs import PairArcs, pair_arcs
from dfcompile.dfmodel_backend.fusion.registry import find_solver
from dfcompile.dfmodel_backend.fusion.solvers.path import PathCosts
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import PathArcs
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import MappingOptions


class GraphProblem(FusionProblem, frozen=True):
    """Kernels of a graph: configurations are listed with their times as columns, fast where there are many of them."""

    model: GraphModel

    @cached_property
    def _listed(self) -> PairArcs | None:
        lattice = self.shape.lattice(self.options.max_down_sets)
        if lattice is None:
            return None
        return pair_arcs(self.model, tuple(lattice), self.shape.most_kernels, self.options.max_arcs)

    def listed(self) -> PairArcs | None:
        """Return all possible configurations, or None if they are too many."""
        return self._listed

    def listed_along_orders(self) -> PairArcs:
        """Return the configurations along a few topological orders, shorter ones where those are too many."""
        lattice, most, budget = tuple(self.shape.intervals()), self.shape.most_kernels, self.options.max_arcs
        arcs = pair_arcs(self.model, lattice, most, budget)
        while arcs is None:
            most = max(1, min(most, len(self.model.works)) // 2)
            arcs = pair_arcs(self.model, lattice, most, budget if most > 1 else len(lattice) ** 2)
        return arcs

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations."""
        assert isinstance(arcs, PairArcs)
        return PathCosts(arcs.time_ns, arcs.dram_bytes, self.tie_ns)

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program that is too large or stopped without a solution."""
        return self.shortest_path()


def lattice_for(shape: FusionShape, most: int) -> tuple[DownSets, bool]:
    """Return the down-sets to consider and whether these are all; else, where all are too many, those of few orders."""
    lattice = shape.lattice(most)
    return (lattice, True) if lattice is not None else (shape.intervals(), False)


def fuse(model: SetModel, options: MappingOptions, solver: FusionSolver | None = None) -> Fusion:
    """Return the fastest chain of configurations, or none if nothing fits SRAM, DRAM and cores.

    Of equally fast ones it is that with the fewest DRAM bytes, then with the fewest configurations. Budgets count work,
    never time. If the down-sets or pairs of them are too many, the chain is the best along a few topological orders; if
    an integer program is too large, or stops at its limit of nodes or time without a solution, another one is taken.

    Args:
        model: of the chip.
        options: of the mapping.
        solver: None: the one that the options name.

    Raises:
        UserError: there is no such solver.
        PluginError: a plug-in's solver failed.
        InternalError: a solver of ours failed.
    """
    problem = GraphProblem(model, options) if isinstance(model, GraphModel) else FusionProblem(model, options)
    return (solver or find_solver(options.solver)).solve(problem)

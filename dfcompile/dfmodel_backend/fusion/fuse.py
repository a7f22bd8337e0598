"""Fusion of a design's kernels into configurations by the solver that was asked for."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.designs.sets import DesignSets
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion
from dfcompile.dfmodel_backend.fusion.registry import find_solver
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathArcs, PathCosts, Rank
from dfcompile.dfmodel_backend.fusion.solvers.shortest_path import along_orders
from dfcompile.dfmodel_backend.fusion.terms import FusionTerms
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_of, arcs_of_chain
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap


class Lists(Protocol):
    """Lists the possible configurations of a design."""

    def listed(self, sets: DesignSets) -> Arcs | None:
        """Return all of them, or None if they are too many."""

    def listed_along_orders(self, sets: DesignSets) -> Arcs:
        """Return those along a few topological orders."""


@dataclass(frozen=True, slots=True)
class ListsOfOne:
    """Lists those of one model, if there are no more than so many down-sets."""

    max_down_sets: int

    def listed(self, sets: DesignSets) -> Arcs | None:
        """Return all possible configurations, or None if they are too many."""
        lattice = sets.shape.lattice(self.max_down_sets)
        return None if lattice is None else arcs_of(sets.shape, lattice, sets.may_grow)

    def listed_along_orders(self, sets: DesignSets) -> Arcs:
        """Return the possible configurations along a few topological orders."""
        return arcs_of(sets.shape, sets.shape.intervals(), sets.may_grow)


@dataclass(frozen=True, slots=True)
class DesignProblem:
    """The kernels of a design as a `FusionProblem`."""

    sets: DesignSets
    options: MappingOptions
    lists: Lists

    @property
    def shape(self) -> FusionShape:
        """Precedence, pins, passes and stages."""
        return self.sets.shape

    @property
    def overlap(self) -> Overlap:
        """Of the design's execution."""
        return self.sets.overlap

    @property
    def counted(self) -> str:
        """Of the design's execution."""
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
        times = np.zeros(len(chain))
        used = [number for number, kernels in enumerate(chain) if kernels]
        times[used] = self.sets.arc_times(arcs_of_chain(chain, len(self.shape.predecessors)))
        return times

    def rank(self, chain: Chain) -> Rank:
        """Return time, DRAM bytes and configurations of a chain."""
        return self.sets.rank(chain)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel, of a design without memory units."""
        return self.sets.terms()

    def may_solve(self, variables: int) -> bool:  # noqa: ARG002  # designs are small
        """Return True: an integer program may have any number of variables."""
        return True

    def listed(self) -> Arcs | None:
        """Return all possible configurations, or None if they are too many."""
        return self.lists.listed(self.sets)

    def listed_along_orders(self) -> Arcs:
        """Return the possible configurations along a few topological orders."""
        return self.lists.listed_along_orders(self.sets)

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations."""
        assert isinstance(arcs, Arcs)
        return self.sets.arc_costs(arcs)

    def least_chain(self, arcs: PathArcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of listed configurations, and the chain, or None if there is none."""
        assert isinstance(arcs, Arcs)
        return self.sets.least_chain(arcs)

    def instead(self) -> Fusion:
        """Return the best chain along a few topological orders."""
        return along_orders(self)


def lattice_for(shape: FusionShape, most: int) -> tuple[DownSets, bool]:
    """Return the down-sets to consider and whether these are all; else, where all are too many, those of few orders."""
    lattice = shape.lattice(most)
    return (lattice, True) if lattice is not None else (shape.intervals(), False)


def fuse(sets: DesignSets, options: MappingOptions) -> Fusion:
    """Return the fastest chain of configurations, or none if nothing fits SRAM, DRAM and cores.

    If the down-sets are too many, or an integer program meets its time limit without a solution, the chain is the
    best along a few topological orders.

    Raises:
        UserError: there is no such solver.
        PluginError: a plug-in's solver failed.
        InternalError: a solver of ours failed.
    """
    return find_solver(options.solver).solve(DesignProblem(sets, options, ListsOfOne(options.max_down_sets)))

"""What a solver of fusion is given, sets of kernels of a model with costs and limits, and what it returns.

Solvers of pipelines get the kernels of all layers, to be parted into stages.
"""

from collections.abc import Sequence
from functools import cached_property
from math import inf

import numpy as np
from msgspec import Struct, field

from dfcompile.dfmodel_backend.columns import Column, members_of
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, Chain, PathCosts, Rank, least_chain, least_chain_of_pmus
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_figures, arc_times, set_figures, set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, FusionShape, PathArcs, arcs_of, arcs_of_chain, kernels_of
from dfcompile.dfmodel_backend.options import MappingOptions

SHORTEST_PATH, ALONG_ORDERS = "dp", "intervals"  # solvers that others hand over to


class Fusion(Struct, frozen=True):
    """What a solver found.

    Attributes:
        chain: set of kernels of each configuration, 0 where it is empty; None if no chain was found.
        time_ns: of all; infinite without a chain.
        is_optimal: whether it is proved that no other chain is faster; without a chain that there is none.
        solver: name of the one that found it: another one's if a solver handed over to it.
        stages: of a pipeline, of each configuration; empty if each stage runs the whole graph.
    """

    chain: Chain | None
    time_ns: float
    is_optimal: bool
    solver: str
    stages: tuple[int, ...] = ()


class FusionProblem(Struct, frozen=True, dict=True):
    """Kernels to fuse into configurations, with costs and limits of their sets: all that a solver knows of a model.

    Kernels are numbered from 0; a set of them is a bit mask: ``0b101`` holds kernels 0 and 2. A chain is the sets of
    the configurations in order of execution. Together they hold every kernel once, and each kernel runs no earlier
    than its predecessors.

    Attributes:
        model: of the chip: `SetModel` has the figures of each kernel and tensor, for programs that do not list sets.
        options: limits of the work: of nodes, of listed configurations.
    """

    model: SetModel
    options: MappingOptions = field(default_factory=MappingOptions)

    @property
    def shape(self) -> FusionShape:
        """Precedence, and which kernels each configuration may hold: pins, passes, stages."""
        return self.model.shape

    def may_solve(self, variables: int) -> bool:
        """Return whether an integer program of so many variables may be solved."""
        return variables <= self.options.max_variables

    def listed(self) -> PathArcs | None:
        """Return all possible configurations, or None if they are too many."""
        lattice = self.shape.lattice(self.options.max_down_sets)
        return None if lattice is None else arcs_of(self.shape, lattice, self.may_grow)

    def listed_along_orders(self) -> PathArcs:
        """Return the possible configurations along a few topological orders."""
        return arcs_of(self.shape, self.shape.intervals(), self.may_grow)

    def shortest_path(self) -> Fusion:
        """Return the best chain of all; of too many configurations the best along a few orders."""
        arcs = self.listed()
        if arcs is None:
            return self.along_orders()
        time_ns, chain = self.least_chain(arcs)
        return Fusion(chain, time_ns, is_optimal=True, solver=SHORTEST_PATH)

    def along_orders(self) -> Fusion:
        """Return the best chain along a few topological orders."""
        time_ns, chain = self.least_chain(self.listed_along_orders())
        return Fusion(chain, time_ns, is_optimal=False, solver=ALONG_ORDERS)

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program that is too large or stopped without a solution."""
        return self.along_orders()

    @property
    def _count(self) -> int:
        return len(self.model.works)

    @cached_property
    def _sums(self) -> dict[int, int]:
        """What sets of kernels hold, as far as it was asked for: at first of kernels alone."""
        return {0: 0, **{1 << kernel: round(size) for kernel, size in enumerate(self.model.growth_limit[0])}}

    def may_grow(self, kernels: int) -> bool:
        """Return whether a larger set may be possible: what several kernels hold is all there, weights are whole."""
        capacity = self.model.growth_limit[1]
        return not capacity or self._sum(kernels) <= capacity

    def _sum(self, kernels: int) -> int:
        if kernels not in self._sums:
            lowest = kernels & -kernels
            self._sums[kernels] = self._sum(kernels ^ lowest) + self._sums[lowest]
        return self._sums[kernels]

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time in ns of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
        return set_times(self.model, members_of(sets, self._count))

    def chain_times(self, chain: Chain) -> Column:
        """Return the time in ns of each set of a chain, infinite if it breaks a limit of cores, SRAM or DRAM.

        Sets of no kernel take no time.
        """
        times = np.zeros(len(chain))
        used = [number for number, kernels in enumerate(chain) if kernels]
        times[used] = arc_times(self.model, arcs_of_chain(chain, self._count))
        return times

    def least_chain(self, arcs: PathArcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of listed configurations, and the chain, or None if there is none."""
        if self.model.pmu is not None and isinstance(arcs, Arcs):
            return least_chain_of_pmus(self.model, arcs, self.shape)
        return least_chain(arcs, self.costs_of(arcs), self.shape)

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations; infinite time if one is not possible after all."""
        assert isinstance(arcs, Arcs)
        return PathCosts(*arc_figures(self.model, arcs), self.tie_ns)

    @cached_property
    def alone(self) -> tuple[Column, Column]:
        """Time and DRAM bytes of each kernel alone."""
        return set_figures(self.model, np.eye(self._count, dtype=bool))

    @cached_property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        times, _ = self.alone
        return TIE * float(times[np.isfinite(times)].sum())

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast: time in ns, DRAM bytes, configurations."""
        sets = tuple(kernels for kernels in chain if kernels)
        times, dram_bytes = set_figures(self.model, members_of(sets, self._count))
        return float(times.sum()), float(dram_bytes.sum()), len(sets)


def configs_of(model: DesignModel, chain: Sequence[int]) -> dict[int, int]:
    """Return the configuration of each kernel, by id."""
    return {
        model.shares[position].kernel.id: slot for slot, added in enumerate(chain) for position in kernels_of(added)
    }


class StageProblem(FusionProblem, frozen=True, kw_only=True):
    """The kernels of all layers of a design, to be parted into stages and fused in each.

    Attributes:
        model: of the chip.
        below_ns: a slowest stage of more is of no interest.
    """

    model: DesignModel
    below_ns: float = inf

    def arcs(self) -> Arcs:
        """Return all possible configurations or, if they are too many, those along a few topological orders."""
        arcs = self.listed() or self.listed_along_orders()
        assert isinstance(arcs, Arcs)
        return arcs

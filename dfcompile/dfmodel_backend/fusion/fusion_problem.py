"""What a solver of fusion is given, and what it returns."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathArcs, PathCosts, Rank
from dfcompile.dfmodel_backend.fusion.terms import FusionTerms
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap


class Fusion(Struct, frozen=True):
    """What a solver found.

    Attributes:
        chain: set of kernels of each configuration, 0 where it is empty; None if no chain was found.
        time_ns: of all; infinite without a chain.
        is_optimal: whether it is proved that no other chain is faster; without a chain that there is none.
        solver: name of the one that found it: another one's if a solver handed over to it.
    """

    chain: Chain | None
    time_ns: float
    is_optimal: bool
    solver: str


class FusionProblem(Protocol):
    """Kernels to fuse into configurations, with costs and limits of their sets: all that a solver knows of a model.

    Kernels are numbered from 0; a set of them is a bit mask: ``0b101`` holds kernels 0 and 2. A chain is the sets of
    the configurations in order of execution. Together they hold every kernel once, and each kernel runs no earlier
    than its predecessors.
    """

    @property
    def shape(self) -> FusionShape:
        """Precedence, and which kernels each configuration may hold."""

    @property
    def options(self) -> MappingOptions:
        """Limits of the work: of time, of nodes, of listed configurations."""

    @property
    def overlap(self) -> Overlap:
        """What runs at the same time in a configuration."""

    @property
    def counted(self) -> str:
        """Which of compute, memory and network count: letters of ``CMN``."""

    @property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time in ns ``[kernel, 3]``; each adds up over any set of kernels."""

    @property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time in ns of each set of kernels, infinite if it breaks a limit of cores or SRAM."""

    def chain_times(self, chain: Chain) -> Column:
        """Return the time in ns of each set of a chain, infinite if it breaks a limit of cores, SRAM or DRAM.

        Sets of no kernel take no time.
        """

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast: time in ns, DRAM bytes, configurations."""

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel, for programs that do not list sets."""

    def may_solve(self, variables: int) -> bool:
        """Return whether an integer program of so many variables may be solved."""

    def listed(self) -> PathArcs | None:
        """Return all possible configurations, or None if they are too many."""

    def listed_along_orders(self) -> PathArcs:
        """Return the possible configurations along a few topological orders."""

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations; infinite time if one is not possible after all."""

    def least_chain(self, arcs: PathArcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of listed configurations, and the chain, or None if there is none."""

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program that is too large or stopped without a solution."""

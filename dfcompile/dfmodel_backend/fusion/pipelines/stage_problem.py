"""What a solver of the stages of a pipeline is given, and what it returns."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from dfcompile.dfmodel_backend.fusion.designs.fused import Fused
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs
from dfcompile.dfmodel_backend.milp import Outcome


class StageProblem(Protocol):
    """The kernels of all layers, to be parted into stages and fused in each."""

    @property
    def model(self) -> DesignModel:
        """Costs and limits."""

    @property
    def problem(self) -> FusionProblem:
        """The same of sets of kernels."""

    @property
    def below_ns(self) -> float:
        """A slowest stage of more is of no interest."""

    @property
    def time_limit_s(self) -> float:
        """Of an integer program; 0: none."""

    def arcs(self) -> Arcs:
        """Return all possible configurations or, if they are too many, some of them."""


class Stages(Struct, frozen=True):
    """What was found: the stages or, with their outcome, none."""

    fused: Fused | None
    outcome: Outcome


FuseStages: TypeAlias = Callable[[StageProblem], Stages]

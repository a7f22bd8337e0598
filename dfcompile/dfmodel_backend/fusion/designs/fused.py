"""An assignment of a design's kernels to configurations as solvers find it, and what those of pipelines are given."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs
from dfcompile.dfmodel_backend.kernel_sets.down_sets import kernels_of
from dfcompile.dfmodel_backend.milp import Outcome


class Fused(Struct, frozen=True):
    """An assignment of kernels, by id, to configurations, and its time."""

    configs: dict[int, int]
    time_ns: float
    stages: tuple[int, ...] = ()  # pipeline stage of each configuration; empty if each stage runs the whole graph


def configs_of(model: DesignModel, chain: Sequence[int]) -> dict[int, int]:
    """Return the configuration of each kernel, by id."""
    return {
        model.shares[position].kernel.id: slot for slot, added in enumerate(chain) for position in kernels_of(added)
    }


class StageProblem(Struct, frozen=True):
    """The kernels of all layers, to be parted into stages and fused in each.

    Attributes:
        model: costs and limits.
        problem: the same of sets of kernels.
        below_ns: a slowest stage of more is of no interest.
        time_limit_s: of an integer program; 0: none.
        arcs: gives all possible configurations or, if they are too many, some of them.
    """

    model: DesignModel
    problem: FusionProblem
    below_ns: float
    time_limit_s: float
    arcs: Callable[[], Arcs]


class Stages(Struct, frozen=True):
    """What was found: the stages or, with their outcome, none."""

    fused: Fused | None
    outcome: Outcome


FuseStages: TypeAlias = Callable[[StageProblem], Stages]

"""What the mapping of a dataflow graph, and the solution of a design, depend on besides graph and system.

And what figures rest on, said in the report, and how far a time is above its bound.
"""

from enum import StrEnum, unique
from functools import reduce
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility

_Times = npt.NDArray[np.float64]


@unique
class Overlap(StrEnum):
    """Which of compute C, DRAM traffic M and network traffic N of a configuration run at the same time."""

    PERFECT_OVERLAP = "PERFECT_OVERLAP"  # max(C, M, N)
    NO_OVERLAP = "NO_OVERLAP"  # C + M + N
    OVERLAP_COMPUTE_MEMORY = "OVERLAP_COMPUTE_MEMORY"  # max(C, M) + N

    def time_ns(self, compute_ns: float, memory_ns: float, network_ns: float) -> float:
        """Return the time of a configuration."""
        return float(max(sums_of(self, compute_ns, memory_ns, network_ns)))

    def times_ns(self, compute_ns: _Times, memory_ns: _Times, network_ns: _Times) -> _Times:
        """Return the times of many configurations."""
        return np.asarray(reduce(np.maximum, sums_of(self, compute_ns, memory_ns, network_ns)))


def sums_of(overlap: Overlap, compute: Any, memory: Any, network: Any) -> tuple[Any, ...]:
    """Return the sums of which the largest is the time of a configuration, of whatever can be added."""
    match overlap:
        case Overlap.PERFECT_OVERLAP:
            return compute, memory, network
        case Overlap.NO_OVERLAP:
            return (compute + memory + network,)
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return compute + network, memory + network
    assert_never(overlap)


class Timed(Struct, frozen=True):
    """What takes compute, memory and network.

    Attributes:
        compute_ns: on cores.
        memory_ns: of its DRAM traffic.
        network_ns: of exchanges with other chips.
        time_ns: of all, overlapped as the options say.
    """

    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float

    @property
    def bound_by(self) -> str:
        """Which of compute, memory and network takes longest."""
        return max(("compute", "memory", "network"), key=lambda kind: float(getattr(self, f"{kind}_ns")))


DEFAULT_SOLVER = "dp"
NS_PER_S = 1e9


class MappingOptions(Struct, frozen=True):
    """Options of `map_graph`."""

    solver: str = DEFAULT_SOLVER  # name of a registered solver of fusion
    overlap: Overlap = Overlap.PERFECT_OVERLAP
    compute_utilization: float = 0.0  # of the peak; 0: lanes and stages are given to kernels one by one
    max_configurations: int = 0  # 0: as many as kernels
    max_down_sets: int = 3000  # above, solvers that list down-sets hand over to `intervals`, and it is said
    max_arcs: int = 2_000_000  # pairs of down-sets; above, `intervals`, too
    max_variables: int = 20_000  # of an integer program; above, the shortest path is taken
    max_nodes: int = 20_000  # of the search tree of an integer program; above, its best solution counts, with a gap


MOST_DOWN_SETS = 20_000
MOST_ARCS = 4_000_000  # pairs of down-sets


@unique
class ShardingObjective(StrEnum):
    """What a sharding minimises."""

    BYTES = "bytes"  # between chips, as in [ko24]
    TIME = "time"  # of a batch: several shardings are tried


class DesignOptions(Struct, frozen=True):
    """Options of `solve_design`."""

    solver: str = DEFAULT_SOLVER  # name of a registered solver of fusion
    objective: ShardingObjective | None = None  # None: time, or bytes as the original
    compatibility: Compatibility = RIGHT
    max_down_sets: int = MOST_DOWN_SETS  # above, configurations are intervals of a topological order, and it is said
    max_arcs: int = MOST_ARCS  # above, the same

    @property
    def sharding_objective(self) -> ShardingObjective:
        """What the sharding minimises."""
        default = ShardingObjective.BYTES if self.compatibility.sharding_of_fewest_bytes else ShardingObjective.TIME
        return self.objective or default


def gap_above(bound: float, time: float) -> float:
    """Return (time - bound) / bound, as gaps of makespans are given; 0 of a time that is its bound."""
    return (time - bound) / bound if time != bound else 0.0


class Assumption(Struct, frozen=True):
    """A value that the user did not give, and where it comes from."""

    name: str
    value: str
    source: str

"""What the solution of a design depends on besides the design."""

from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.options import DEFAULT_SOLVER

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
    time_limit_s: float = 0.0  # of a MILP; 0: none

    @property
    def sharding_objective(self) -> ShardingObjective:
        """What the sharding minimises."""
        default = ShardingObjective.BYTES if self.compatibility.sharding_of_fewest_bytes else ShardingObjective.TIME
        return self.objective or default

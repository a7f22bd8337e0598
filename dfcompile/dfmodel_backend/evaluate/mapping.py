"""A mapping: the result of this stage."""

from dataclasses import dataclass

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.evaluate.graphs import Configuration
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.kernel_splits import Choice
from dfcompile.dfmodel_backend.workload.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping, its figures and what is known of the optimum."""

    configs: tuple[Configuration, ...]
    time_s: float
    flop: int
    dram_bytes: int
    network_bytes: int
    cost_usd: float
    power_w: float
    energy_j: float
    utilization: float  # of the peak FLOP of all chips
    optimal: bool
    gap: float  # (time - bound) / bound
    bound_time_s: float
    solver: str
    solver_s: float  # wall time; the one figure that differs between runs
    options: MappingOptions
    assumptions: tuple[Assumption, ...]
    chips: int = 1  # in use
    moved_bytes: int = 0  # that all chips together receive
    sharding: tuple[tuple[str, Choice], ...] = ()  # of each kernel, on several chips
    exchanges: tuple[Exchange, ...] = ()  # between chips

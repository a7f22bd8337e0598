"""A mapping: the result of this stage."""

from msgspec import Struct

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.evaluate.graphs import Figures
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import Choice


class Mapping(Struct, frozen=True):
    """A mapping, its figures and what is known of the optimum."""

    figures: Figures  # of all chips in use
    optimal: bool
    gap: float  # (time - bound) / bound
    bound_time_s: float
    solver: str
    solver_s: float  # wall time; the one figure that differs between runs
    options: MappingOptions
    assumptions: tuple[Assumption, ...]
    system: System  # with the chips in use
    chips: int = 1  # in use
    sharding: tuple[tuple[str, Choice], ...] = ()  # of each kernel, on several chips
    network_chips: tuple[int, ...] = ()  # along each dimension of the network, the innermost first; on several chips

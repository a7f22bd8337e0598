"""The chips that share a lowering: what each of them runs is one of several shares, and what they exchange."""

from msgspec import Struct

from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.sharding.graphs import Choice
from dfcompile.dfmodel_backend.workload.exchange import Exchange


class ChipsInUse(Struct, frozen=True):
    """Several chips; every one is charged as the one with most of everything.

    Attributes:
        system: with the chips in use.
        sharding: of every kernel.
        exchanges: of all chips.
        apart: pairs of kernels of which the second reads what chips make of the result of the first, in a layout of its
            own: the second is in a later configuration.
    """

    system: System
    sharding: tuple[tuple[str, Choice], ...]
    exchanges: tuple[Exchange, ...]
    apart: tuple[tuple[str, str], ...]

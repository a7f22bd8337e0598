"""The roofs of a machine: what one chip computes, reads and receives per second at most [ko24, section 4]."""

from msgspec import Struct

from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.machine.network.collective_times import ns_per_byte
from dfcompile.dfmodel_backend.machine.system import System

PER_GIGA = 1e9


class Roofs(Struct, frozen=True):
    """Rates that kernels attain on one chip, at most; above the peak are only tasks that join many streams at once.

    Attributes:
        flop_per_s: of all multiply-adders, two operations each and cycle.
        dram_bytes_per_s: of the DRAM; ``None``: unlimited.
        network_bytes_per_s: that reach the chip from others, in whichever collective is fastest, along all dimensions
            of the network together; 0 of one chip.
    """

    flop_per_s: float
    dram_bytes_per_s: float | None
    network_bytes_per_s: float


def roofs_of(system: System) -> Roofs:
    """Return the roofs of one chip of a system with the chips in use."""
    links = () if system.chips == 1 else system.machine.links
    return Roofs(
        system.accelerator.peak_gflops * PER_GIGA,
        None if system.is_dram_unlimited else system.dram_gb_per_s * PER_GIGA,
        sum(_received_per_ns(link) for link in links if link.chips > 1) * PER_GIGA,
    )


def _received_per_ns(link: Link) -> float:
    """Return the bytes per ns that a chip of a group gets from the others.

    In an all-gather of N chips it gets (N - 1) / N of the tensor, in an all-to-all N - 1 messages.
    """
    others = link.chips - 1
    gathered = others / link.chips / ns_per_byte(Collective.ALL_GATHER, link)
    return max(gathered, others / ns_per_byte(Collective.ALL_TO_ALL, link))

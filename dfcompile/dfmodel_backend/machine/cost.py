"""What a machine costs and draws, and what one of its chips computes, reads and receives per second at most [ko24]."""

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.collective_times import ns_per_byte
from dfcompile.dfmodel_backend.machine.network.topologies import network_cost_usd, network_power_w
from dfcompile.dfmodel_backend.machine.system import Collective, Link, Machine, System

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


def cost_usd(system: System) -> float:
    """Return the price of a system."""
    return machine_cost_usd(system.machine)


def power_w(system: System) -> float:
    """Return the power of a system."""
    return machine_power_w(system.machine)


def machine_cost_usd(machine: Machine, copies: int = 1, compatibility: Compatibility = RIGHT) -> float:
    """Return the price of the machine with so many copies of the workload."""
    prices = machine.prices
    chip_usd = prices.accelerator_usd + machine.dram_gb_per_s * prices.dram_usd_per_gb_per_s
    return machine.chips * chip_usd + network_cost_usd(machine.network, copies=copies, compat=compatibility)


def machine_power_w(machine: Machine, copies: int = 1, compatibility: Compatibility = RIGHT) -> float:
    """Return the power of the machine with so many copies of the workload."""
    prices = machine.prices
    chip_w = prices.accelerator_w + machine.dram_gb_per_s * prices.dram_w_per_gb_per_s
    return machine.chips * chip_w + network_power_w(machine.network, copies=copies, compat=compatibility)

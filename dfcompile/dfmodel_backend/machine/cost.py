"""Cost and power of machines: accelerators, DRAM, links and switches [ko24, section 5]."""

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.machine import Machine
from dfcompile.dfmodel_backend.machine.network.topologies import network_cost_usd, network_power_w
from dfcompile.dfmodel_backend.machine.system import System


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

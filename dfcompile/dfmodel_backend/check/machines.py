"""What the chips of a machine attain and cost, from its description alone [ko24, section 5]; for checkers."""

from dfcompile.dfmodel_backend.check.chip_network import ChipNetwork
from dfcompile.dfmodel_backend.machine.system import Amount, System

PER_GIGA = 1e9
PER_S = 1e9  # ns


def on_chip(amount: Amount, system: System) -> float:
    """Return a figure of one chip, of all its cores where it is given per core."""
    return amount.value * (system.accelerator.cores if amount.per_core else 1)


def peak_flop_per_s(system: System) -> float:
    """Return the operations per second of one chip: two of each multiply-adder in each cycle."""
    chip = system.accelerator
    return 2 * chip.lanes_per_core * chip.stages_per_core * chip.cores * chip.frequency_ghz * PER_GIGA


def dram_bytes_per_ns(system: System) -> float:
    """Return the bandwidth of the DRAM of one chip."""
    return on_chip(system.dram.bandwidth, system)


def price_usd(system: System) -> float:
    """Return the price of all chips with their DRAM and network."""
    dram_usd = dram_bytes_per_ns(system) * system.dram.price_usd_per_gb_per_s
    chip_usd = on_chip(system.accelerator.price, system) + dram_usd
    return system.chips * chip_usd + ChipNetwork(system.network).price_usd


def power_w(system: System) -> float:
    """Return the power of all chips with their DRAM and network."""
    dram_w = dram_bytes_per_ns(system) * system.dram.power_w_per_gb_per_s
    chip_w = on_chip(system.accelerator.power, system) + dram_w
    return system.chips * chip_w + ChipNetwork(system.network).power_w

"""Cost and power of a system [ko24, section 5]."""

from dfcompile.dfmodel_backend.system import System


def cost_usd(system: System) -> float:
    """Return the price of accelerators and DRAM of all chips."""
    return system.chips * (system.accelerator.price_usd + system.dram_gb_per_s * system.dram.price_usd_per_gb_per_s)


def power_w(system: System) -> float:
    """Return the power of accelerators and DRAM of all chips."""
    return system.chips * (system.accelerator.power_w + system.dram_gb_per_s * system.dram.power_w_per_gb_per_s)

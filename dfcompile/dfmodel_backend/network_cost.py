"""Cost and power of a machine with its links and switches [ko24, section 5]."""

from dfcompile.dfmodel_backend.design import Machine

SWITCHLESS_CHIPS = 4  # up to so many chips are wired directly


def link_units_gb_per_s(machine: Machine, copies: int) -> list[float]:
    """Return, per dimension, the bandwidth of all links of one copy of the workload."""
    size = [link.chips for link in machine.links]
    speed = [link.gb_per_s for link in machine.links]
    chips = machine.chips // copies
    if chips == 1:
        return [0.0] * len(size)
    name = machine.topology
    if name in ("r", "sw"):
        units: list[float] = [size[0]]
    elif name == "fc":
        units = [size[0] * (size[0] - 1)]
    elif name == "fc_fc":
        units = [size[0] * (size[0] - 1) * size[1], size[1] * (size[1] - 1)]
    elif name == "r_fc":
        units = [chips, size[1] * (size[1] - 1)]
    elif name in ("r_sw", "sw_sw"):
        units = [chips, size[1]]
    elif name in ("r_sw_sw", "sw_sw_sw"):
        units = [chips, size[1] * size[2], size[2]]
    else:
        units = [chips] * len(size)
    return [unit * bandwidth for unit, bandwidth in zip(units, speed, strict=True)]


def switch_units_gb_per_s(machine: Machine, copies: int) -> list[float]:
    """Return, per dimension, the bandwidth of all switches of one copy of the workload."""
    size = [link.chips for link in machine.links]
    speed = [link.gb_per_s for link in machine.links]
    chips = machine.chips // copies
    if chips <= SWITCHLESS_CHIPS:
        return [0.0] * len(size)
    units = _switches(machine.topology, size, chips)
    return [unit * bandwidth for unit, bandwidth in zip(units, speed, strict=True)]


def _switches(name: str, size: list[int], chips: int) -> list[int]:
    """Return switch ports per dimension; a ring closes over two ports, a fully connected group needs none inside."""
    if len(size) == 1:
        return {"r": [2], "sw": [size[0]], "fc": [0]}[name]
    x, y = size[0], size[1]
    planar = {
        "r_r": [2 * y, 2 * x],
        "fc_fc": [0, y * y],
        "r_fc": [2 * y, y * y],
        "r_sw": [2 * y, y],
        "sw_sw": [chips, y],
    }
    if name in planar:
        return planar[name]
    if name == "r_r_r_r":
        w, x, y, z = size
        return [2 * x * y * z, 2 * w * y * z, 2 * w * x * z, 2 * w * x * y]
    z = size[2]
    return {
        "r_r_r": [2 * y * z, 2 * x * z, 2 * x * y],
        "r_sw_sw": [2 * y * z, y * z, z],
        "sw_sw_sw": [chips, y * z, z],
    }[name]


def machine_cost_usd(machine: Machine, copies: int = 1) -> float:
    """Return the price of accelerators, DRAM, links and switches."""
    prices = machine.prices
    links = sum(link_units_gb_per_s(machine, copies)) * prices.link_usd_per_gb_per_s * copies
    switches = sum(switch_units_gb_per_s(machine, copies)) * prices.switch_usd_per_gb_per_s * copies
    dram = machine.chips * machine.dram_gb_per_s * prices.dram_usd_per_gb_per_s
    return machine.chips * prices.accelerator_usd + dram + links + switches


def machine_power_w(machine: Machine, copies: int = 1) -> float:
    """Return the power of accelerators, DRAM, links and switches."""
    prices = machine.prices
    links = sum(
        unit * link.power_w_per_gb_per_s
        for unit, link in zip(link_units_gb_per_s(machine, copies), machine.links, strict=True)
    )
    switches = sum(switch_units_gb_per_s(machine, copies)) * prices.switch_w_per_gb_per_s
    dram = machine.chips * machine.dram_gb_per_s * prices.dram_w_per_gb_per_s
    return machine.chips * prices.accelerator_w + dram + (links + switches) * copies

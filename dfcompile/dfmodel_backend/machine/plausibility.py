"""Plausibility of a machine: figures that no chip has, mostly because they are in another unit than the key says."""

from collections.abc import Iterator
from typing import NamedTuple

from dfcompile.dfmodel_backend.machine.machine import Machine
from dfcompile.dfmodel_backend.machine.system import System


class _Range(NamedTuple):
    least: float  # 0 is never too little: it means none, or unlimited
    most: float
    below: str  # what the unit probably is
    above: str


# Ten times and more beyond what has been built (a wafer has 900,000 cores, 40 GB of SRAM, 25 kW and costs 3 M$).
FREQUENCY_GHZ = _Range(0.01, 20.0, "THz", "MHz")
SRAM_BYTES = _Range(512.0, 1e12, "kB or MB", "bits")
DRAM_GB_PER_S = _Range(0.1, 1e6, "TB/s", "MB/s or bytes/s")
DRAM_BYTES = _Range(1e6, 1e16, "GB", "bits")
LINK_GB_PER_S = _Range(0.01, 1e5, "TB/s", "MB/s or bytes/s")
LATENCY_NS = _Range(0.1, 1e8, "µs or s", "ps")
PRICE_USD = _Range(0.01, 1e8, "thousands of USD", "cents")
POWER_W = _Range(1e-3, 1e6, "kW", "mW")


def implausible_machine(machine: Machine) -> tuple[str, ...]:
    """Return a line for each figure of a set-up file that no machine has."""
    figures = [
        ("freq", machine.frequency_ghz, "GHz", FREQUENCY_GHZ),
        ("sram_cap", machine.sram_bytes, "bytes", SRAM_BYTES),
        ("dram_bw", machine.dram_gb_per_s, "GB/s", DRAM_GB_PER_S),
        ("dram_cap", machine.dram_bytes, "bytes", DRAM_BYTES),
        ("link_latency", machine.link_latency_ns, "ns", LATENCY_NS),
        *(("link_bw", link.gb_per_s, "GB/s", LINK_GB_PER_S) for link in machine.links),
    ]
    return tuple(dict.fromkeys(line for figure in figures for line in _judged(*figure)))


def implausible(system: System) -> tuple[str, ...]:
    """Return a line for each figure that no machine has, with the unit that was probably meant."""
    return tuple(_lines(system))


def _lines(system: System) -> Iterator[str]:
    chip, dram = system.accelerator, system.dram
    yield from _judged("accelerator.frequency_ghz", chip.frequency_ghz, "GHz", FREQUENCY_GHZ)
    if not chip.sram.per_core:
        yield from _judged("accelerator.sram_bytes", chip.sram.value, "bytes", SRAM_BYTES)
    if not chip.price.per_core:
        yield from _judged("accelerator.price_usd", chip.price.value, "USD", PRICE_USD)
    if not chip.power.per_core:
        yield from _judged("accelerator.power_w", chip.power.value, "W", POWER_W)
    if not dram.bandwidth.per_core and not system.is_dram_unlimited:
        yield from _judged("dram.bandwidth_gb_per_s", dram.bandwidth.value, "GB/s", DRAM_GB_PER_S)
    yield from _judged("dram.capacity_bytes", dram.capacity.value, "bytes", DRAM_BYTES)
    for number, dimension in enumerate(system.network.dimensions):
        key = f"network.dimensions.{number}.link_bandwidth_gb_per_s"
        yield from _judged(key, dimension.link_bandwidth_gb_per_s, "GB/s", LINK_GB_PER_S)
    yield from _judged("network.link_latency_ns", system.network.link_latency_ns, "ns", LATENCY_NS)


def _judged(key: str, value: float, unit: str, usual: _Range) -> Iterator[str]:
    if value and not usual.least <= value <= usual.most:
        meant = usual.below if value < usual.least else usual.above
        limit = f"at least {usual.least:g}" if value < usual.least else f"at most {usual.most:g}"
        yield f"key {key!r}: found {value:g} {unit} against {limit} {unit} (is it in {meant}?)"

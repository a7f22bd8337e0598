"""Plausibility of a machine: figures that no chip has, mostly because they are in another unit than the key says."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from dfcompile.dfmodel_backend.machine.system import Amount, Machine, OnChipStreams, System
from dfcompile.errors import UserError, nearest


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
    """Return a line for each figure of a system file that no machine has; those per core are not judged."""
    chip, dram, network = system.accelerator, system.dram, system.network
    figures = [
        ("accelerator.frequency_ghz", Amount(chip.frequency_ghz), "GHz", FREQUENCY_GHZ),
        ("accelerator.sram_bytes", chip.sram, "bytes", SRAM_BYTES),
        ("accelerator.price_usd", chip.price, "USD", PRICE_USD),
        ("accelerator.power_w", chip.power, "W", POWER_W),
        ("dram.bandwidth_gb_per_s", Amount(0.0) if system.is_dram_unlimited else dram.bandwidth, "GB/s", DRAM_GB_PER_S),
        ("dram.capacity_bytes", dram.capacity, "bytes", DRAM_BYTES),
    ]
    for number, dimension in enumerate(network.dimensions):
        key = f"network.dimensions.{number}.link_bandwidth_gb_per_s"
        figures.append((key, Amount(dimension.link_bandwidth_gb_per_s), "GB/s", LINK_GB_PER_S))
    figures.append(("network.link_latency_ns", Amount(network.link_latency_ns), "ns", LATENCY_NS))
    lines = (_judged(key, one.value, unit, usual) for key, one, unit, usual in figures if not one.per_core)
    return tuple(chain.from_iterable(lines))


def _judged(key: str, value: float, unit: str, usual: _Range) -> Iterator[str]:
    if value and not usual.least <= value <= usual.most:
        meant = usual.below if value < usual.least else usual.above
        limit = f"at least {usual.least:g}" if value < usual.least else f"at most {usual.most:g}"
        yield f"key {key!r}: found {value:g} {unit} against {limit} {unit} (is it in {meant}?)"


def require_types(streams: OnChipStreams, known: Iterable[str]) -> None:
    """Check that pipelines are of types of operators that there are.

    Raises:
        UserError: one is not.
    """
    types = set(known)
    for op in streams.operator_pipeline_cycles:
        if op not in types:
            where = f"--system: key 'streams.operator_pipeline_cycles.{op}'"
            raise UserError(f"{where}: no operator is of this type{nearest(op, types)}")

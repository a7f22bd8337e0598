"""Columns that a spreadsheet of devices may have."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from dfcompile.language_models.machines.units import Quantity

# What a column measures, and the field of a device that its value is as it stands; empty: none.
PLAIN: Final[Mapping[str, tuple[Quantity, str]]] = MappingProxyType(
    {
        "name": (Quantity.TEXT, "name"),
        "source": (Quantity.TEXT, ""),
        "compat": (Quantity.TEXT, ""),
        "cores": (Quantity.COUNT, ""),
        "frequency": (Quantity.FREQUENCY, "frequency_hz"),
        "memory.capacity": (Quantity.BYTES, "capacity_bytes"),
        "memory.bandwidth": (Quantity.BANDWIDTH, "bytes_per_s"),
        "memory.energy": (Quantity.ENERGY_PER_BYTE, "pj_per_byte"),
        "offload.capacity": (Quantity.BYTES, ""),
        "offload.bandwidth": (Quantity.BANDWIDTH, ""),
        "offload.energy": (Quantity.ENERGY_PER_BYTE, ""),
        "vector": (Quantity.ELEMENT_RATE, "vector_per_s"),
        "energy.vector": (Quantity.ENERGY, "vector_pj"),
        "array": (Quantity.EXTENTS, ""),
        "eff.compute": (Quantity.SHARE, "compute_efficiency"),
        "eff.memory": (Quantity.SHARE, "memory_efficiency"),
        "launch": (Quantity.TIME, "launch_s"),
        "tdp": (Quantity.POWER, "tdp_w"),
        "idle": (Quantity.POWER, "idle_w"),
        "price": (Quantity.MONEY, "usd"),
    }
)
NAMED: Final = (
    (re.compile(r"macs_per_cycle_per_core\.(\w+)"), Quantity.COUNT),
    (re.compile(r"peak\.(\w+)"), Quantity.RATE),
    (re.compile(r"memory\.(\w+)\.capacity"), Quantity.BYTES),
    (re.compile(r"memory\.(\w+)\.bandwidth"), Quantity.BANDWIDTH),
    (re.compile(r"memory\.(\w+)\.shared_by"), Quantity.COUNT),
    (re.compile(r"memory\.(\w+)\.energy"), Quantity.ENERGY_PER_BYTE),
    (re.compile(r"memory\.(\w+)\.usable"), Quantity.SHARE),
    (re.compile(r"link\.(\w+)\.bandwidth"), Quantity.BANDWIDTH),
    (re.compile(r"link\.(\w+)\.latency"), Quantity.TIME),
    (re.compile(r"link\.(\w+)\.topology"), Quantity.TEXT),
    (re.compile(r"link\.(\w+)\.size"), Quantity.COUNT),
    (re.compile(r"link\.(\w+)\.energy"), Quantity.ENERGY_PER_BYTE),
    (re.compile(r"energy\.mac\.(\w+)"), Quantity.ENERGY),
)
KNOWN: Final = (*PLAIN, "macs_per_cycle_per_core.bf16", "peak.bf16", "memory.L2.capacity", "link.NAME.bandwidth")


def quantity_of(key: str) -> Quantity | None:
    """Return what a key measures, or none if it is not known."""
    if key in PLAIN:
        return PLAIN[key][0]
    return next((quantity for pattern, quantity in NAMED if pattern.fullmatch(key)), None)


def names_in(keys: Mapping[str, object], prefix: str, suffix: str = "") -> Iterator[str]:
    """Yield the middle of keys ``prefix.NAME`` or ``prefix.NAME.suffix``, each once, in order."""
    pattern = re.compile(rf"{re.escape(prefix)}\.(\w+){re.escape(suffix)}")
    for key in keys:
        found = pattern.fullmatch(key)
        if found is not None:
            yield found[1]

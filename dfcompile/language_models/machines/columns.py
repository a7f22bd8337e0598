"""Columns that a spreadsheet of devices may have, with their units: vendors' are decimal, binary ones have an i."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Final

_PREFIXES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY: Final = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)}
_HEADING = re.compile(r"\s*([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?\s*")


@unique
class Quantity(StrEnum):
    """What a column measures; a count, a share and a text have no unit."""

    TEXT = "text"
    COUNT = "count"
    SHARE = "share"
    EXTENTS = "extents"
    BYTES = "bytes"
    BANDWIDTH = "bytes per second"
    FREQUENCY = "frequency"
    RATE = "operations per second"
    ELEMENT_RATE = "elements per second"
    TIME = "time"
    POWER = "power"
    ENERGY = "energy"
    ENERGY_PER_BYTE = "energy per byte"
    MONEY = "money"


def _scaled(unit: str, *, binary: bool = False) -> dict[str, float]:
    prefixes = {**_PREFIXES, **_BINARY} if binary else _PREFIXES
    return {f"{prefix}{unit}": size for prefix, size in prefixes.items()}


_BYTES: Final = {**_scaled("B", binary=True), "KB": 1e3}

UNITS: Final[Mapping[Quantity, Mapping[str, float]]] = MappingProxyType(
    {
        Quantity.BYTES: _BYTES,
        Quantity.BANDWIDTH: {f"{unit}/s": size for unit, size in _BYTES.items()},
        Quantity.FREQUENCY: _scaled("Hz"),
        Quantity.RATE: {**_scaled("MAC/s"), **{unit: size / 2 for unit, size in _scaled("FLOP/s").items()}},
        Quantity.ELEMENT_RATE: _scaled("op/s"),
        Quantity.TIME: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
        Quantity.POWER: {"W": 1.0, "kW": 1e3, "mW": 1e-3},
        Quantity.ENERGY: {"pJ": 1.0, "fJ": 1e-3, "nJ": 1e3},
        Quantity.ENERGY_PER_BYTE: {"pJ/B": 1.0, "pJ/bit": 8.0},
        Quantity.MONEY: {"USD": 1.0, "$": 1.0},
    }
)


def heading_of(text: str) -> tuple[str, str]:
    """Return the key and the unit of a heading such as ``frequency [GHz]``; no unit is empty."""
    found = _HEADING.fullmatch(text)
    return (found[1], found[2] or "") if found is not None else (text.strip(), "")


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

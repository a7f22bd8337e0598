"""Columns that a spreadsheet of devices may have, with their units: vendors' are decimal, binary ones have an i."""

import math
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

_PREFIXES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY: Final = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)}
_HEADING = re.compile(r"\s*([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?\s*")


class Quantity(Struct, frozen=True):
    """What a column measures.

    Attributes:
        units: that headings may have, with what makes base units of them; empty: it has none.
        is_text: or a number above 0.
        most: of a number.
    """

    units: Mapping[str, float] = {}
    is_text: bool = False
    most: float = math.inf


def _scaled(unit: str, *, binary: bool = False) -> dict[str, float]:
    prefixes = {**_PREFIXES, **_BINARY} if binary else _PREFIXES
    return {f"{prefix}{unit}": size for prefix, size in prefixes.items()}


_BYTES: Final = {**_scaled("B", binary=True), "KB": 1e3}
TEXT, COUNT, SHARE = Quantity(is_text=True), Quantity(), Quantity(most=1.0)
BYTES, BANDWIDTH = Quantity(_BYTES), Quantity({f"{unit}/s": size for unit, size in _BYTES.items()})
FREQUENCY, ELEMENT_RATE = Quantity(_scaled("Hz")), Quantity(_scaled("op/s"))
RATE = Quantity({**_scaled("MAC/s"), **{unit: size / 2 for unit, size in _scaled("FLOP/s").items()}})
TIME = Quantity({"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9})
POWER = Quantity({"W": 1.0, "kW": 1e3, "mW": 1e-3})
ENERGY = Quantity({"pJ": 1.0, "fJ": 1e-3, "nJ": 1e3})
ENERGY_PER_BYTE = Quantity({"pJ/B": 1.0, "pJ/bit": 8.0})
MONEY = Quantity({"USD": 1.0, "$": 1.0})


def heading_of(text: str) -> tuple[str, str]:
    """Return the key and the unit of a heading such as ``frequency [GHz]``; no unit is empty."""
    found = _HEADING.fullmatch(text)
    return (found[1], found[2] or "") if found is not None else (text.strip(), "")


# What a column measures, and the field of a device that its value is as it stands; empty: none.
PLAIN: Final[Mapping[str, tuple[Quantity, str]]] = MappingProxyType(
    {
        "name": (TEXT, "name"),
        "source": (TEXT, ""),
        "compat": (TEXT, ""),
        "cores": (COUNT, ""),
        "frequency": (FREQUENCY, "frequency_hz"),
        "memory.capacity": (BYTES, "capacity_bytes"),
        "memory.bandwidth": (BANDWIDTH, "bytes_per_s"),
        "memory.energy": (ENERGY_PER_BYTE, "pj_per_byte"),
        "offload.capacity": (BYTES, ""),
        "offload.bandwidth": (BANDWIDTH, ""),
        "offload.energy": (ENERGY_PER_BYTE, ""),
        "vector": (ELEMENT_RATE, "vector_per_s"),
        "energy.vector": (ENERGY, "vector_pj"),
        "array": (TEXT, ""),
        "eff.compute": (SHARE, "compute_efficiency"),
        "eff.memory": (SHARE, "memory_efficiency"),
        "launch": (TIME, "launch_s"),
        "tdp": (POWER, "tdp_w"),
        "idle": (POWER, "idle_w"),
        "price": (MONEY, "usd"),
    }
)
NAMED: Final = (
    (re.compile(r"macs_per_cycle_per_core\.(\w+)"), COUNT),
    (re.compile(r"peak\.(\w+)"), RATE),
    (re.compile(r"memory\.(\w+)\.capacity"), BYTES),
    (re.compile(r"memory\.(\w+)\.bandwidth"), BANDWIDTH),
    (re.compile(r"memory\.(\w+)\.shared_by"), COUNT),
    (re.compile(r"memory\.(\w+)\.energy"), ENERGY_PER_BYTE),
    (re.compile(r"memory\.(\w+)\.usable"), SHARE),
    (re.compile(r"link\.(\w+)\.bandwidth"), BANDWIDTH),
    (re.compile(r"link\.(\w+)\.latency"), TIME),
    (re.compile(r"link\.(\w+)\.topology"), TEXT),
    (re.compile(r"link\.(\w+)\.size"), COUNT),
    (re.compile(r"link\.(\w+)\.energy"), ENERGY_PER_BYTE),
    (re.compile(r"energy\.mac\.(\w+)"), ENERGY),
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

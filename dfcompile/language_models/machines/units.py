"""Units in headings of spreadsheets: vendors' are decimal, binary ones have an i."""

import re
from collections.abc import Mapping
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

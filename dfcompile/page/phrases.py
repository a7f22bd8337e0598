"""Figures in sentences: as many digits as one reads, and a unit."""

from math import isfinite

from dfcompile.page.records import Record
from dfcompile.report.plain_values import Json

_EXACT = 2**53  # whole numbers below it are exact as floats
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str) -> str:
    """Return a figure with a prefix of its unit.

    >>> quantity(5.2023e-05, "s"), quantity(1409408, "B"), quantity(0, "B")
    ('52.0 µs', '1.41 MB', '0 B')
    """
    three = float(f"{value:.3g}")  # 999.6 has the prefix of 1000
    for factor, prefix in _PREFIXES:
        if abs(three) >= factor:
            scaled = three / factor
            whole = factor == 1.0 and float(value).is_integer()
            return f"{scaled:.0f} {unit}" if whole else f"{scaled:#.3g}".rstrip(".") + f" {prefix}{unit}"
    return f"{value:g} {unit}"


def counted(value: float, unit: str) -> str:
    """Return an exact number with its unit.

    >>> counted(36742, "cycles")
    '36,742 cycles'
    """
    return f"{value:,} {unit}"


def exact(value: float) -> str:
    """Return all digits of a number that the JSON has, as the page's scripts write them.

    >>> exact(172800), exact(1.8479e-05), exact(0.25), exact(4096.0)
    ('172,800', '1.8479e-5', '0.25', '4,096')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}"
    digits, exponent, power = f"{value!r}".partition("e")
    return f"{digits}e{int(power)}" if exponent else digits


def share(value: float) -> str:
    """Return a ratio as per cent.

    >>> share(0.0404), share(0.00347), share(2.5)
    ('4.0 %', '0.3 %', '250 %')
    """
    if not isfinite(value):
        return "without bound"
    return f"{100 * value:.0f} %" if value >= 1 else f"{100 * value:.1f} %"


def choices(report: Record, path: str) -> str:
    """Return chosen names as ``MatMul=mv Conv=direct``; empty where there are none."""
    value: Json = report.at(path)
    if isinstance(value, dict):
        return " ".join(f"{key}={name}" for key, name in value.items())
    return value if isinstance(value, str) else ""

"""Figures in sentences: as many digits as one reads, and a unit."""

from collections.abc import Sequence
from math import isfinite

from dfcompile.page.records import Record
from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Column

_SPAN = 100  # times the least figure of a column in one unit
_WHOLE = 1000  # from here on three digits are fewer than those before the point
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


def column(heading: str, values: Sequence[float | None], unit: str) -> Column:
    """Return figures as a column in one unit; where they span much each has its own prefix. What is missing is a dash.

    >>> column("time", [1.8546e-05, 2.511e-06, None], "s")
    Column(heading='time, µs', cells=('18.5', '2.51', '-'), is_text=False)
    >>> column("moved", [1.94e9, 12582912], "B")
    Column(heading='moved', cells=('1.94 GB', '12.6 MB'), is_text=False)
    """
    sizes = [abs(value) for value in values if value]
    if unit and sizes and max(sizes) > _SPAN * min(sizes):
        return Column(heading, tuple("-" if value is None else quantity(value, unit) for value in values))
    factor, prefix = next((pair for pair in _PREFIXES if unit and sizes and max(sizes) >= pair[0]), (1.0, ""))
    named = f"{heading}, {prefix}{unit}" if unit else heading
    return Column(named, tuple("-" if value is None else figure(value / factor) for value in values))


def figure(value: float) -> str:
    """Return at most four digits of a number, whole ones in full.

    >>> figure(2511), figure(18.546), figure(309.034), figure(0.01234), figure(43950336)
    ('2,511', '18.5', '309', '0.0123', '43,950,336')
    """
    if float(value).is_integer() or abs(value) >= _WHOLE:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def four_digits(value: float) -> float:
    """Return a number as far as four digits say it.

    >>> four_digits(386.4150943), four_digits(0.0880475)
    (386.4, 0.08805)
    """
    return float(f"{value:.4g}")


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

"""Numbers that a user gives for an option, as values of Python or as the texts of the command line.

A reader takes how the option is called, for its errors, and what is given. Nothing heavy is imported.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from dfcompile.errors import UserError, nearest
from dfcompile.options.words import LARGEST_COUNT

Counts: TypeAlias = int | str | Iterable[int | str]  # 16, [16, 128] or "16,128"

MOST_DIGITS = 20  # of an integer of 64 bits
LARGEST_SIZE = 2**63 - 1  # bytes
# Powers of 1,024, in small letters; k, kB and KiB are one.
UNITS = {"B": 0} | {
    name: power for power, letter in enumerate("kMG", 1) for name in (letter, f"{letter}B", f"{letter}iB")
}
REAL = r"[+-]?(?:\d{1,40}(?:\.\d{1,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"


def counts(where: str, given: Counts) -> tuple[int, ...]:
    """Read numbers such as ``16,128``.

    Raises:
        UserError: not positive integers, or one of them twice.

    >>> counts("--pes", "16,128"), counts("--pes", 16), counts("--pes", ("4", "8,16"))
    ((16, 128), (16,), (4, 8, 16))
    """
    found = tuple(count(where, part) for part in parts(given))
    reject_duplicates(where, found)
    return found


def within(least: int, most: int, wanted: str = "{} to {}") -> Callable[[str, int | str], int]:
    """Return what reads an integer of a range; ``wanted`` is what its errors say of the range.

    >>> within(1, 1024)("--jobs", "2")
    2
    """

    def read(where: str, given: int | str) -> int:
        found = str(given).strip()
        # The length comes first: Python refuses to read thousands of digits.
        if not re.fullmatch(rf"-?\d{{1,{MOST_DIGITS}}}", found, re.ASCII) or not least <= int(found) <= most:
            raise UserError(f"{where}: found {_quoted(given)} against {wanted.format(least, most)}")
        return int(found)

    return read


def real(least: int, most: int, wanted: str = "{} to {}") -> Callable[[str, float | str], float]:
    """Return what reads a number of a range; ``wanted`` is what its errors say of the range.

    >>> real(0, 10)("--usd", "2.5")
    2.5
    """

    def read(where: str, given: float | str) -> float:
        found = read_real(str(given))
        if found is None or not least <= found <= most:
            raise UserError(f"{where}: found {_quoted(given)} against {wanted.format(least, most)}")
        return float(found)

    return read


def _quoted(given: float | str) -> str:
    return repr(given[:40]) if isinstance(given, str) else str(given)


def sizes(plain: str) -> Callable[[str, Counts], tuple[int, ...]]:
    """Return what reads sizes of memory as bytes: numbers with a unit, ``B``, ``k``, ``kB``, ``KiB``, ``M`` … ``GiB``.

    Units are powers of 1,024, in small or large letters.

    Args:
        plain: the unit of a number that has none.

    >>> sizes("B")("--buffer", "64KiB,1MB,4096"), sizes("kB")("--on-chip-memory", (256, "8m"))
    ((65536, 1048576, 4096), (262144, 8388608))
    """

    def read(where: str, given: Counts) -> tuple[int, ...]:
        words = [word.strip() for word in parts(given)]
        found = tuple(_size(where, word, plain) for word in words)
        for position, size in enumerate(found):
            if size in found[:position]:
                raise UserError(f"{where}: {words[position]!r} given twice against once")
        return found

    return read


def _size(where: str, word: str, plain: str) -> int:
    match = re.fullmatch(rf"({REAL}) ?([A-Za-z]*)", word, re.ASCII)
    if match is None:
        raise UserError(f"{where}: found {word!r} against a size such as 512, 64KiB or 8MB (without a unit: {plain})")
    unit, powers = (match[2] or plain).lower(), {name.lower(): power for name, power in UNITS.items()}
    if unit not in powers:
        raise UserError(
            f"{where}: found unit {match[2]!r} in {word!r} against {', '.join(UNITS)}{nearest(unit, UNITS)}"
        )
    exact = (read_real(match[1]) or 0) * 1024 ** powers[unit]
    if not 1 <= exact <= LARGEST_SIZE:
        raise UserError(f"{where}: found {word!r} against 1 to less than 2^63 bytes")
    if exact.denominator > 1:
        raise UserError(f"{where}: found {word!r} against a whole number of bytes")
    return int(exact)


def slack(where: str, given: str | float | Fraction) -> Fraction:
    """Read a percentage, which a text is, as a part of 1.

    Raises:
        UserError: no number from 0 to 1000.

    >>> slack("--slack", "2.5"), slack("--slack", 0.5)
    (Fraction(1, 40), Fraction(1, 2))
    """
    if not isinstance(given, str):
        return Fraction(given)
    percentage = read_real(given)
    if percentage is None or not 0 <= percentage <= 1000:
        raise UserError(f"{where}: found {given!r} against a percentage from 0 to 1000, such as 10")
    return percentage / 100


def read_real(text: str) -> Fraction | None:
    """Read a number as people and programs write one; None if it is none.

    >>> read_real("2.5"), read_real("1e3"), read_real("-.5E-1"), read_real("1e9999")
    (Fraction(5, 2), Fraction(1000, 1), Fraction(-1, 20), None)
    """
    # Few digits: Python refuses to read thousands, and an exponent may ask for more.
    return Fraction(text) if re.fullmatch(REAL, text.strip(), re.ASCII) else None


def count(where: str, given: int | str, *, least: int = 1) -> int:
    """Read an integer that is no less than 0 or 1.

    Raises:
        UserError: it is none; the message says where it stands.
    """
    stripped = str(given).strip()
    # The length comes first: Python refuses to read thousands of digits.
    is_number = len(stripped) <= len(str(LARGEST_COUNT)) and stripped.isascii() and stripped.isdigit()
    if not is_number or not least <= int(stripped) <= LARGEST_COUNT:
        wanted = "a positive integer" if least else "an integer from 0"
        raise UserError(f"{where}: found {stripped!r} against {wanted} up to {LARGEST_COUNT}")
    return int(stripped)


def parts(given: Counts) -> list[str]:
    """Return what is given as a list, between commas, or both."""
    listed = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else given
    return ",".join(map(str, listed)).split(",")


def reject_duplicates(where: str, words: tuple[int, ...] | tuple[str, ...]) -> None:
    """Check that each is given once.

    Raises:
        UserError: one is given twice.
    """
    for position, one in enumerate(words):
        if one in words[:position]:
            raise UserError(f"{where}: {one} is given twice")

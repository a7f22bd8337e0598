"""Readers of numbers that a user gives for an option, as Python values or as texts on the command line.

A reader takes the name of the option, for error messages, and the value given. Nothing heavy is imported.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from dfcompile.errors import UserError, nearest
from dfcompile.options.words import LARGEST_COUNT

Counts: TypeAlias = int | str | Iterable[int | str]  # 16, [16, 128] or "16,128"

MOST_DIGITS = 20  # as many as 64-bit integers have
LARGEST_SIZE = 2**63 - 1  # bytes
# Power of 1,024 of each unit; k, kB and KiB are the same.
UNITS = {"B": 0} | {
    name: power for power, letter in enumerate("kMG", 1) for name in (letter, f"{letter}B", f"{letter}iB")
}
REAL = r"[+-]?(?:\d{1,40}(?:\.\d{1,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"


def counts(where: str, given: Counts) -> tuple[int, ...]:
    """Read numbers such as ``16,128``.

    Raises:
        UserError: a part is no positive integer, or is given twice.

    >>> counts("--pes", "16,128"), counts("--pes", 16), counts("--pes", ("4", "8,16"))
    ((16, 128), (16,), (4, 8, 16))
    """
    numbers = tuple(count(where, part) for part in parts(given))
    reject_duplicates(where, numbers)
    return numbers


def within(least: int, most: int, wanted: str = "{} to {}") -> Callable[[str, int | str], int]:
    """Return a reader of integers from ``least`` to ``most``; ``wanted`` describes this range in its errors.

    >>> within(1, 1024)("--jobs", "2")
    2
    """

    def read(where: str, given: int | str) -> int:
        text = str(given).strip()
        # The length comes first: Python refuses to read thousands of digits.
        if not re.fullmatch(rf"-?\d{{1,{MOST_DIGITS}}}", text, re.ASCII) or not least <= int(text) <= most:
            raise UserError(f"{where}: found {_quoted(given)} against {wanted.format(least, most)}")
        return int(text)

    return read


def real(least: int, most: int, wanted: str = "{} to {}") -> Callable[[str, float | str], float]:
    """Return a reader of numbers from ``least`` to ``most``; ``wanted`` describes this range in its errors.

    >>> real(0, 10)("--usd", "2.5")
    2.5
    """

    def read(where: str, given: float | str) -> float:
        number = read_real(str(given))
        if number is None or not least <= number <= most:
            raise UserError(f"{where}: found {_quoted(given)} against {wanted.format(least, most)}")
        return float(number)

    return read


def _quoted(given: float | str) -> str:
    return repr(given[:40]) if isinstance(given, str) else str(given)


def sizes(plain: str) -> Callable[[str, Counts], tuple[int, ...]]:
    """Return a reader of memory sizes in bytes, with units ``B``, ``k``, ``kB``, ``KiB`` … ``GiB`` in any case.

    Args:
        plain: the unit of a number without one.

    >>> sizes("B")("--buffer", "64KiB,1MB,4096"), sizes("kB")("--on-chip-memory", (256, "8m"))
    ((65536, 1048576, 4096), (262144, 8388608))
    """

    def read(where: str, given: Counts) -> tuple[int, ...]:
        words = [word.strip() for word in parts(given)]
        in_bytes = tuple(_size(where, word, plain) for word in words)
        for position, size in enumerate(in_bytes):
            if size in in_bytes[:position]:
                raise UserError(f"{where}: {words[position]!r} given twice against once")
        return in_bytes

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
    """Read a slack as a fraction: a text is a percentage, a number is the fraction itself.

    Raises:
        UserError: a text is no number from 0 to 1000.

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
    """Read a number in decimal or scientific notation; None if the text is no number.

    >>> read_real("2.5"), read_real("1e3"), read_real("-.5E-1"), read_real("1e9999")
    (Fraction(5, 2), Fraction(1000, 1), Fraction(-1, 20), None)
    """
    # Few digits: Python refuses to read thousands, and an exponent may ask for more.
    return Fraction(text) if re.fullmatch(REAL, text.strip(), re.ASCII) else None


def count(where: str, given: int | str, *, least: int = 1) -> int:
    """Read an integer from ``least``, 0 or 1, to `LARGEST_COUNT`.

    Raises:
        UserError: it is not; the message names the option.
    """
    stripped = str(given).strip()
    # The length comes first: Python refuses to read thousands of digits.
    is_number = len(stripped) <= len(str(LARGEST_COUNT)) and stripped.isascii() and stripped.isdigit()
    if not is_number or not least <= int(stripped) <= LARGEST_COUNT:
        wanted = "a positive integer" if least else "an integer from 0"
        raise UserError(f"{where}: found {stripped!r} against {wanted} up to {LARGEST_COUNT}")
    return int(stripped)


def parts(given: Counts) -> list[str]:
    """Return the parts of a list, of a text with commas, or of a list of such texts."""
    listed = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else given
    return ",".join(map(str, listed)).split(",")


def reject_duplicates(where: str, words: tuple[int, ...] | tuple[str, ...]) -> None:
    """Check that no word is given twice.

    Raises:
        UserError: naming the word.
    """
    for position, word in enumerate(words):
        if word in words[:position]:
            raise UserError(f"{where}: {word} is given twice")

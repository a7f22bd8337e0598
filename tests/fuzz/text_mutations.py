"""Mutations of text files: numbers, words, lines, characters and bytes that are other ones, missing or twice."""

import re
from collections.abc import Callable, Sequence

from tests.fuzz.draw import Draw

NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "0.5", "-0", "1e400", "nan", "inf", "-inf", "true", "4294967296", "2147483647",
    "9223372036854775807", "9223372036854775808", "1" * 400, "0x10", "1_000", "1e3", "1.0", "٣", "", "null", "[]",
    "'1'", '"1"',
)  # fmt: skip
PIECES = (
    "\x00", "\x1b[31m", "\r", "\n", "\t", " ", "é", "∞", "\ud7ff", "\u202e", "\ufeff", "{", "}", "[", "]", ":",
    ",", '"', "'", "#", "-", "=", "->", "&a", "*a", "!!python/object:os.system", "<<:", "%", "@", "|", ">", "\\",
    "\\ud800", "\u2028", "\x85",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*")


def mutated_text(text: str, draw: Draw) -> bytes:
    """Return a file of which one to three things are otherwise; a few files are not changed at all."""
    for _ in range(draw.choice([0, 1, 1, 1, 1, 2, 2, 3])):
        text = draw.choice(_MUTATIONS)(text, draw)
    content = text.encode("utf-8", errors="surrogatepass")
    if draw.chance(0.05):
        place = draw.integer(0, len(content))
        content = content[:place] + bytes([draw.integer(128, 255)]) + content[place:]
    return content


def _number(text: str, draw: Draw) -> str:
    other = draw.choice(NUMBERS) if draw.chance(0.6) else str(draw.integer(-2, 40))
    return _replaced(text, _NUMBER, other, draw)


def _word(text: str, draw: Draw) -> str:
    words = _WORD.findall(text)
    return _replaced(text, _WORD, draw.choice(words), draw) if words else text


def _replaced(text: str, pattern: re.Pattern[str], other: str, draw: Draw) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    chosen = draw.choice(found)
    return text[: chosen.start()] + other + text[chosen.end() :]


def _lines(text: str, draw: Draw) -> str:
    """Remove, repeat, exchange or move lines."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    first, second = (draw.integer(0, len(lines) - 1) for _ in range(2))
    what = draw.integer(0, 3)
    if what == 0:
        del lines[first]
    elif what == 1:
        lines.insert(second, lines[first])
    elif what == 2:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        low, high = sorted((first, second))
        del lines[low : min(high, low + 5)]
    return "".join(lines)


def _piece(text: str, draw: Draw) -> str:
    place = draw.integer(0, len(text))
    rest = text[place + draw.integer(0, 2) :]
    return text[:place] + draw.choice(PIECES) + rest


def _repeated(text: str, draw: Draw) -> str:
    """Repeat a character very often, or cut the file off."""
    place = draw.integer(0, len(text))
    if draw.chance(0.5):
        return text[:place]
    return text[:place] + text[place : place + 1] * draw.choice([2, 50, 5000]) + text[place:]


_MUTATIONS: Sequence[Callable[[str, Draw], str]] = (
    _number,
    _number,
    _number,
    _word,
    _word,
    _lines,
    _lines,
    _piece,
    _repeated,
)

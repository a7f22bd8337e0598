"""What may be shown: texts of files, paths and errors without characters that a terminal or a line format obeys.

Names come from files that anybody may have written. A control character in one can recolour, retitle or rewrite a
terminal, a bidirectional override turns what is read around, a line separator makes two lines of one. They are shown by
their number; every character that is seen, of whatever script, stays.
"""

import json
import re
import unicodedata

_LONGEST = 300
_TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def named(error: BaseException) -> str:
    r"""Return an exception's type and message in one line.

    >>> named(ValueError("bad\nvery bad")), named(AssertionError())
    ('ValueError: bad', 'AssertionError')
    """
    return ": ".join(filter(None, [type(error).__name__, one_line(error)]))


def one_line(text: object) -> str:
    r"""Return the first line of ``text`` that says something, without colours and cut at 300 characters.

    >>> one_line("\n  Bad shape \nsee the manual")
    'Bad shape'
    """
    for line in _TERMINAL_COLOUR.sub("", str(text)).splitlines():
        if line.strip():
            found = " ".join(line.split())
            return found if len(found) <= _LONGEST else found[: _LONGEST - 1] + "…"
    return ""


def reason_of(error: Exception) -> str:
    """Return the reason of an error in a line; words of the system are small, names in another text keep their case.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "A.txt")), reason_of(RuntimeError("loop from 'A'"))
    ('no such file or directory', "loop from 'A'")
    """
    said = error.strerror if isinstance(error, OSError) else None
    return said.lower() if said else " ".join(str(error).split()) or "unknown reason"


def printable(text: str) -> str:
    r"""Return a text with every character that is not seen as its escape.

    >>> printable("卷积 \x1b[31mred\n")
    '卷积 \\x1b[31mred\\n'
    """
    if text.isprintable():
        return text
    return "".join(char if _is_seen(char) else char.encode("unicode_escape").decode("ascii") for char in text)


def json_text(value: object, *, indent: int | None = None) -> str:
    r"""Return a value as JSON that reads the same back, with every character that is not seen as ``\uXXXX``.

    Raises:
        ValueError: a number that JSON has not: infinite or undefined.

    >>> json_text(["é", "\x9b"])
    '["é", "\\u009b"]'
    """
    # The lines are JSON's own: it escapes those inside of texts.
    lines = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_json_character, line)) for line in lines)


def _is_seen(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"  # blanks of other widths


def _json_character(char: str) -> str:
    return char if _is_seen(char) else json.dumps(char)[1:-1]

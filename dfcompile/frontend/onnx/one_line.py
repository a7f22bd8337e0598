"""Foreign error messages in one line, so that ours stay one line."""

import re

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

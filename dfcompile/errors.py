"""The one tree of exceptions; every message reads ``where: found against expected (a hint)``."""

import difflib
import math
from collections.abc import Iterable

LONGEST_WORD = 200  # characters: how alike two words are takes the product of their lengths
MOST_WORDS = 5000


class DfcompileError(Exception):
    """Base of everything dfcompile raises on purpose."""


class UserError(DfcompileError):
    """Bad input: the command line prints the message as one line and exits with status 1."""


class UnsupportedOpError(UserError):
    """An operator (or a form of it) that has no expansion; the message names the node."""


class InfeasibleError(UserError):
    """A problem without a solution; the message names the constraint that cannot be met.

    Attributes:
        limit: that is too low, where one is.
        enough: the least value of it with which there is a solution.
    """

    def __init__(self, message: str = "", limit: str = "", enough: float = math.inf) -> None:
        super().__init__(message)
        self.limit = limit
        self.enough = enough


class ReplayTooLargeError(UserError):
    """A schedule with so many elements to be looked at one by one that a replay would take too long or too much."""


class DisagreementError(UserError):
    """The lowered model and a reference compute different values; the message names both and where they differ."""


class RegistrationError(UserError):
    """Two plug-ins claim one name, or a plug-in cannot be loaded."""


class PluginError(UserError):
    """A plug-in raised, or handed over what it must not; the message names it."""


class InternalError(DfcompileError):
    """A bug of dfcompile: the command line asks for a report and exits with status 2."""


class VerificationError(InternalError):
    """A stage produced a value that its own verifier or checker rejects."""


class OperatorFieldError(VerificationError):
    """A canonical operator with a field that it has not, without one that it needs, or with a wrong value."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint such as ``(did you mean 'Relu'?)`` with a leading blank, or list what there is.

    >>> nearest("ReLU", ["Relu", "Add"])
    " (did you mean 'Relu'?)"
    >>> nearest("zzz", ["Relu", "Add"])
    ' (known: Add, Relu)'
    """
    names = sorted(set(known))
    if len(word) > LONGEST_WORD:
        return ""
    by_lower = {name.lower(): name for name in reversed(names) if len(name) <= LONGEST_WORD}
    close = difflib.get_close_matches(word.lower(), list(by_lower)[:MOST_WORDS], n=1)
    if close:
        return f" (did you mean {by_lower[close[0]]!r}?)"
    if not names:
        return ""
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f" (known: {listed})"

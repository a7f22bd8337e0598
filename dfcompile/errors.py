"""The one tree of exceptions; every message reads ``where: found against expected (a hint)``."""

import difflib
import math
from collections.abc import Iterable, Sequence

LONGEST_WORD = 200  # characters: how alike two words are takes the product of their lengths
MOST_WORDS = 5000
MOST_ERRORS = 20  # listed together


class DfcompileError(Exception):
    """Base of everything dfcompile raises on purpose."""


class UserError(DfcompileError):
    """Bad input: the command line prints the message as one line and exits with status 1."""


class UnsupportedOpError(UserError):
    """Operators (or forms of them) that have no expansion; the message names the nodes.

    Attributes:
        named: how many nodes the message names.
    """

    def __init__(self, message: str = "", named: int = 1) -> None:
        super().__init__(message)
        self.named = named


class UnfitExpansionError(UnsupportedOpError):
    """An operator of another form than the expansion takes that was named for it; the message says what fits."""


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


def together(errors: Sequence[UnsupportedOpError]) -> UnsupportedOpError:
    """Return one error that says all that is not supported, so that nobody finds it out piece by piece.

    >>> str(together([UnsupportedOpError("node 'a': no"), UnsupportedOpError("node 'b': not this")]))
    "2 operators have no expansion: node 'a': no; node 'b': not this"
    """
    if len(errors) == 1:
        return errors[0]
    listed = "; ".join(map(str, errors[:MOST_ERRORS]))
    more = f"; and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
    are_unfit = all(isinstance(error, UnfitExpansionError) for error in errors)
    what = "do not fit the expansions named for them" if are_unfit else "have no expansion"
    message = f"{len(errors)} operators {what}: {listed}{more}"
    return UnsupportedOpError(message, min(len(errors), MOST_ERRORS))


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

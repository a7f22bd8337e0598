"""Words and patterns of ``--expand``: what they stand for."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Final

from dfcompile.errors import UserError

AUTO: Final = "auto"  # as a value of --expand: expansions and granularity are chosen
PUBLISHED: Final = "published"  # the default expansion of each type, with the tasks that it declares


def is_within(pattern: str, origin: str) -> bool:
    """Return whether a pattern is of an operator, or of a module that it belongs to.

    >>> is_within("layer.*.attn", "layer.3.attn"), is_within("layer.*.attn", "layer.3.attn.matmul")
    (True, True)
    >>> is_within("conv1", "conv10")
    False
    """
    if not any(sign in pattern for sign in "*?["):
        return origin == pattern or origin.startswith((f"{pattern}.", f"{pattern}/"))
    return any(fnmatchcase(origin, f"{pattern}{rest}") for rest in ("", ".*", "/*"))


def names_automatic(texts: Iterable[str]) -> bool:
    """Return whether one of the values of ``--expand`` is ``auto``.

    Raises:
        UserError: it is beside ``published``.
    """
    words = {text.strip() for text in texts} & {AUTO, PUBLISHED}
    if len(words) > 1:
        raise UserError(f"--expand: found {AUTO} and {PUBLISHED} against one of them")
    return AUTO in words


def is_automatic(texts: Collection[str]) -> bool:
    """Return whether expansions are to be chosen: whether ``auto`` is named, or nothing at all.

    Beside rules alone the rest stays as published: what they compare differs in nothing else.

    Raises:
        UserError: ``auto`` is beside ``published``.

    >>> is_automatic([]), is_automatic(["MatMul=mv,op"]), is_automatic(["MatMul=mv,op", "auto"])
    (True, False, True)
    """
    return names_automatic(texts) or not texts

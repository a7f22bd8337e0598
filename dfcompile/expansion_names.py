"""Words and patterns of ``--expand``: what they stand for."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Final

from dfcompile.errors import UserError

# Values of --expand that are no rules.
AUTO: Final = "auto"  # expansions and granularity are chosen, and compared with uniform choices
QUICK: Final = "quick"  # the same, compared with few of them
PUBLISHED: Final = "published"  # the default expansion of each type, with the tasks that it declares
WORDS: Final = (AUTO, QUICK, PUBLISHED)


def is_pattern(text: str) -> bool:
    """Return whether a text stands for names that are like it.

    >>> is_pattern("layer.*.attn"), is_pattern("conv1")
    (True, False)
    """
    return any(sign in text for sign in "*?[")


def is_within(pattern: str, origin: str) -> bool:
    """Return whether a pattern is of an operator, or of a module that it belongs to.

    >>> is_within("layer.*.attn", "layer.3.attn"), is_within("layer.*.attn", "layer.3.attn.matmul")
    (True, True)
    >>> is_within("conv1", "conv10")
    False
    """
    if not is_pattern(pattern):
        return origin == pattern or origin.startswith((f"{pattern}.", f"{pattern}/"))
    return any(fnmatchcase(origin, f"{pattern}{rest}") for rest in ("", ".*", "/*"))


def base_name(name: str) -> str:
    """Return the name of an expansion without the value of a parameter.

    >>> base_name("split-k{parts=8}"), base_name("mv")
    ('split-k', 'mv')
    """
    return name.partition("{")[0]


def told_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of expansions as they are listed: a parametric one once, with its first, second and last value.

    >>> told_names(["ip", "split-k{parts=2}", "split-k{parts=4}", "split-k{parts=8}", "split-k{parts=16}"])
    ('ip', 'split-k{parts=2,4…16}')
    """
    by_base: dict[str, list[str]] = {}
    for name in sorted(names, key=natural_order):
        by_base.setdefault(base_name(name), []).append(name)
    return tuple(map(_told, by_base.values()))


def _told(names: list[str]) -> str:
    first, *others = (name.rpartition("=")[2] for name in names)
    if not others:
        return names[0]
    values = f"{first.removesuffix('}')},{others[0].removesuffix('}')}" if len(others) > 1 else first.removesuffix("}")
    return f"{names[0].removesuffix(first)}{values}…{others[-1]}"


def natural_order(name: str) -> tuple[str, int, str]:
    """Return what sorts names of expansions, parametric ones by their values.

    >>> sorted(["split{parts=16}", "split{parts=2}", "map"], key=natural_order)
    ['map', 'split{parts=2}', 'split{parts=16}']
    """
    return base_name(name), len(name), name


def word_of(texts: Collection[str]) -> str:
    """Return what becomes of expansions that no rule is about: the word that is named, or what holds without one.

    Without anything all is chosen. Beside rules alone the rest stays as published: what they compare differs in nothing
    else.

    Raises:
        UserError: several words are named.

    >>> word_of([]), word_of(["MatMul=mv,op"]), word_of(["MatMul=mv,op", "auto"])
    ('quick', 'published', 'auto')
    """
    named = {text.strip() for text in texts}
    words = [word for word in WORDS if word in named]
    if len(words) > 1:
        raise UserError(f"--expand: found {' and '.join(words)} against one of them")
    return words[0] if words else PUBLISHED if texts else QUICK

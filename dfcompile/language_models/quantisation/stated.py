"""What a configuration says of the modules of a model, whatever its method: lists of modules, and rules for them.

Lists have names or parts of them, globs, and regular expressions.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place
from dfcompile.language_models.quantisation.modules import LINEAR, Module

HEAD = "lm_head"
_REGULAR = "re:"
_OF_REGULAR = re.compile(r"[\\^$|()\[\]{}+]")  # what is in no name and no glob
# Of expressions that treat experts of different numbers alike: no digits, and nothing that matches one by itself.
_BLIND = re.compile(r"(?:\.\*|\\\.|(?<=[A-Za-z_])\.(?=[A-Za-z_])|[A-Za-z_|()?:^$-])*")
_OF_LAYERS = re.compile(r"layers\\?\.(?:\d+|(?:\\d|\[0-9\])\+?)")  # a number that is none of an expert
_REPEATED = re.compile(r"(?<!\\)[*+]|(?<!\\)\{")
_NESTED = re.compile(r"(?<!\\)\)(?:[*+]|\{)")
MOST_REPEATS = 6  # of an expression: matching takes the length of a name to that power


class Names(Struct, frozen=True):
    """A list of modules.

    Attributes:
        place: of the list.
        words: names, and parts of names between dots.
        patterns: that a name has to begin with.
        tells_experts_apart: whether a pattern may be about some experts alone.
    """

    place: Place
    words: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    tells_experts_apart: bool = False

    def has(self, module: Module) -> bool:
        """Return whether an entry is about a module, or about a module that it is part of."""
        if module.kind in self.words:
            return True
        return any(
            (self.words and not self.words.isdisjoint(_parts(name)))
            or any(pattern.match(name) is not None for pattern in self.patterns)
            for name in module.names
        )


def representative_experts(lists: Sequence[Names], count: int) -> frozenset[int]:
    """Return experts of a layer among which there is one of every kind that the lists tell apart."""
    if any(names.tells_experts_apart for names in lists):
        return frozenset(range(count))
    parts = {part for names in lists for word in names.words for part in word.split(".")}
    named = {int(part) for part in parts if part.isdecimal() and len(part) < 9}
    other = next(number for number in range(len(named) + 1) if number not in named)
    return frozenset(number for number in (*named, other) if number < count)


def names_of(entries: Iterable[str], place: Place, *, whole: bool = False) -> Names:
    """Return a list of modules.

    Args:
        entries: names or parts of them between dots, globs, or ``re:`` and a regular expression.
        place: of the list.
        whole: whether an expression has to match the whole name, not only how it begins.

    Raises:
        UserError: an expression is broken, or may take too long to match.
    """
    words, patterns, apart = set(), [], False
    for entry in entries:
        text = entry.removeprefix(_REGULAR)
        if entry.startswith(_REGULAR) or _OF_REGULAR.search(entry):
            patterns.append(_compiled(rf"(?:{text})\Z" if whole else text, entry, place))
            apart = apart or _BLIND.fullmatch(_OF_LAYERS.sub("layers", text)) is None
        elif "*" in (stem := entry.removesuffix(".*")) or "?" in stem:
            patterns.append(_compiled(_of_glob(stem), entry, place, MOST_REPEATS + 2))
            apart = apart or "?" in stem or any(map(str.isdecimal, _OF_LAYERS.sub("layers", stem)))
        else:
            words.add(stem)
    return Names(place, frozenset(words), tuple(patterns), apart)


def _parts(name: str) -> list[str]:
    """Return a name's parts between dots, of any length."""
    parts = name.split(".")
    return [".".join(parts[first:end]) for first in range(len(parts)) for end in range(first + 1, len(parts) + 1)]


def _of_glob(glob: str) -> str:
    shape = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in re.sub(r"\*+", "*", glob))
    return rf"(?:.*\.)?{shape}(?:\..*)?\Z"


def _compiled(text: str, entry: str, place: Place, repeats: int = MOST_REPEATS) -> re.Pattern[str]:
    if _NESTED.search(text) or len(_REPEATED.findall(text)) > repeats:
        raise place.wrong(entry, f"a pattern of at most {MOST_REPEATS} repetitions, none inside of another")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(f"{place.where}: key '{place.path}': found the pattern {entry[:80]!r}: {error}") from error


class Rule(Struct, frozen=True):
    """What some modules are stored in, and what they are multiplied with.

    Attributes:
        place: of the rule.
        weights: format of the matrices; none: the configuration's dtype.
        activations: format of what is multiplied with them; none: the configuration's dtype.
        names: of the modules; none: all that are linear.
        classes: to which it is limited; empty: none.
    """

    place: Place
    weights: NumberFormat | None
    activations: NumberFormat | None = None
    names: Names | None = None
    classes: tuple[str, ...] = ()

    def holds_for(self, module: Module) -> bool:
        """Return whether the rule is about a module."""
        if self.classes and module.weights not in self.classes:
            return False
        return module.kind == LINEAR if self.names is None else self.names.has(module)


class Stated(Struct, frozen=True):
    """What a configuration says.

    Attributes:
        rules: the first one that is about a module holds; a module that none is about stays as it is.
        kept: modules that stay as they are, whatever rules say.
        kv: format of caches; none: as without quantisation.
        notes: what is assumed.
    """

    rules: tuple[Rule, ...]
    kept: Names
    kv: NumberFormat | None = None
    notes: tuple[str, ...] = ()

    def rule_for(self, module: Module) -> Rule | None:
        """Return the rule that holds for a module, if any."""
        if self.kept.has(module):
            return None
        return next((rule for rule in self.rules if rule.holds_for(module)), None)

    @property
    def lists(self) -> tuple[Names, ...]:
        """All lists of modules."""
        return (self.kept, *(rule.names for rule in self.rules if rule.names is not None))


class Method(Struct, frozen=True):
    """A method of quantisation.

    Attributes:
        name: its ``quant_method``.
        stated: reads a ``quantization_config`` of it, given the dtype of what is not quantised, and the place.
        other_names: that it has as well.
        marks: keys that older files without ``quant_method`` are known by.
    """

    name: str
    stated: Callable[[object, NumberFormat, Place], Stated]
    other_names: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


class MethodKeys(Keys, frozen=True, kw_only=True):
    """Keys of most methods.

    Attributes:
        modules_to_not_convert: modules that stay as they are.
    """

    harmless = "quant_method"
    modules_to_not_convert: tuple[str, ...] | None = None


def kept_names(keys: Keys, *lists: str, head: bool = False) -> Names:
    """Return the modules that stay as they are.

    Args:
        keys: with the lists.
        lists: keys of each list of them, which may be null.
        head: whether the head stays if there is no list.
    """
    listed = {key: entries for key in lists if (entries := getattr(keys, key)) is not None}
    entries = [entry for entries in listed.values() for entry in entries]
    if head and not listed:
        entries = [HEAD]
    return names_of(entries, keys.inside(next(iter(listed))) if listed else keys.place)

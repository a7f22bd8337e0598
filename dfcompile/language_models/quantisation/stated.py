"""What a configuration says of the modules of a model, whatever its method."""

from collections.abc import Callable

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place
from dfcompile.language_models.quantisation.modules import LINEAR, Module
from dfcompile.language_models.quantisation.names import Names, names_of

HEAD = "lm_head"


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

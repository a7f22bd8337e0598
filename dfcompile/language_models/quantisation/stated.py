"""What a configuration says of the modules of a model, whatever its method."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.modules import LINEAR, Module
from dfcompile.language_models.quantisation.names import Names, names_of
from dfcompile.language_models.quantisation.place import Place

HEAD = "lm_head"


class Rule(Struct, frozen=True):
    """What some modules are stored in, and what they are multiplied with.

    Attributes:
        names: of the modules; none: all that are linear.
        weights: format of the matrices; none: the configuration's dtype.
        activations: format of what is multiplied with them; none: the configuration's dtype.
        place: of the rule.
        classes: to which it is limited; empty: none.
    """

    names: Names | None
    weights: NumberFormat | None
    activations: NumberFormat | None
    place: Place
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


def uniform_rules(
    weights: NumberFormat, activations: NumberFormat | None, place: Place, classes: tuple[str, ...] = ()
) -> tuple[Rule, ...]:
    """Return rules by which all linear modules are the same."""
    return (Rule(None, weights, activations, place, classes),)


def kept_names(lists: Sequence[tuple[str, Sequence[str] | None]], place: Place, *, head: bool = False) -> Names:
    """Return the modules that stay as they are.

    Args:
        lists: key and value of each list of them.
        place: of the mapping with the lists.
        head: whether the head stays if there is no list.
    """
    there = [(key, entries) for key, entries in lists if entries is not None]
    entries = [entry for _, listed in there for entry in listed]
    if head and not there:
        entries = [HEAD]
    return names_of(entries, place.inside(there[0][0]) if there else place)

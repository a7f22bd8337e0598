"""The space of expansions: operators of one shape, and the ways in which these can be lowered."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.known import OnnxAlternative, OperatorAlternatives
from dfcompile.lowering.alternatives.outlined import Outline
from dfcompile.options import Choice, ExpansionRule
from dfcompile.records import replace

Names = tuple[tuple[str, str], ...]  # operator type -> expansion


class OfferedGroup(Struct, frozen=True):
    """Operators of one shape, which are lowered in the same way, and by what names they can be.

    Attributes:
        origins: of the operators.
        op_type: of them.
        options: names of the expansions of each way, by type of the operator and of the canonical operators within;
            the default first.
    """

    origins: tuple[str, ...]
    op_type: str
    options: tuple[Names, ...]


class Group(OfferedGroup, frozen=True):
    """The same with what each of the operators becomes.

    Attributes:
        lowered: by option, with this expansion of each alone.
    """

    lowered: tuple[OnnxAlternative, ...]

    def tasks(self, pick: int) -> int:
        """Return the number of tasks of all the operators under an option, as declared."""
        scopes = (own for op in self.lowered[pick].operators for own in op.scopes.values())
        return len(self.origins) * sum(scope.members for own in scopes for scope in own)


class Space(Struct, frozen=True, eq=False):
    """The expansions that are chosen from.

    Attributes:
        operators: of the model, each under the expansions that are left to it.
        groups: those with several options; whose options make most difference come first.
    """

    operators: KnownAlternatives
    groups: tuple[Group, ...]

    @property
    def offered(self) -> tuple[OfferedGroup, ...]:
        """The groups, without what their options become."""
        return tuple(OfferedGroup(group.origins, group.op_type, group.options) for group in self.groups)

    def choices(self, picks: Sequence[int]) -> tuple[Choice, ...]:
        """Return the choices of one option per group."""
        return choices_of(self.groups, picks)

    def restricted(self, picks: Sequence[int | None]) -> KnownAlternatives:
        """Return what is left of the alternatives if some groups have one option."""
        left = {
            origin: (group.lowered[pick],)
            for group, pick in zip(self.groups, picks, strict=True)
            if pick is not None
            for origin in group.origins
        }
        operators = tuple(replace(op, expansions=left.get(op.origin, op.expansions)) for op in self.operators.operators)
        return KnownAlternatives(operators, ())

    def uniform(self) -> Iterator[tuple[int, ...]]:
        """Yield the defaults, then of each name of an expansion the picks that use it wherever it can be."""
        yield (0,) * len(self.groups)
        names = [name for group in self.groups for option in group.options for _, name in option]
        for name in dict.fromkeys(names):
            yield tuple(
                next((at for at, option in enumerate(group.options) if name in dict(option).values()), 0)
                for group in self.groups
            )


def choices_of(groups: Sequence[OfferedGroup], picks: Sequence[int]) -> tuple[Choice, ...]:
    """Return the choices of one option per group."""
    return tuple(
        Choice(op_type, name, origin)
        for group, pick in zip(groups, picks, strict=True)
        for origin in group.origins
        for op_type, name in group.options[pick]
    )


def space_of(known: KnownAlternatives, default: Outline, rules: Sequence[ExpansionRule]) -> Space:
    """Return the space of a model.

    Args:
        known: its operators, each under the expansions that take it.
        default: the model under no choices.
        rules: of the user: what operators have to choose from that they are about, all others are as by default;
            none: everything is chosen from.

    Raises:
        UserError: a rule fits no operator, or none of an operator's expansions.
    """
    names: dict[str, dict[str, str]] = {}
    for found in default.chosen:
        names.setdefault(found.origin, {}).setdefault(found.op_type, found.name)
    _check_rules(known, rules)
    shapes: dict[tuple[int, tuple[Names, ...]], Group] = {}
    operators = []
    for op in known.operators:
        options, lowered = zip(*_options(op, names.get(op.origin, {}), rules), strict=True)
        alike = shapes.setdefault((id(op.expansions), options), Group((), op.op_type, options, lowered))
        shapes[id(op.expansions), options] = replace(alike, origins=(*alike.origins, op.origin))
        operators.append(replace(op, expansions=alike.lowered))
    groups = [group for group in shapes.values() if len(group.options) > 1]
    groups.sort(key=lambda group: -max(map(group.tasks, range(len(group.options)))))
    return Space(KnownAlternatives(tuple(operators), ()), tuple(groups))


def _options(
    op: OperatorAlternatives, default: Mapping[str, str], rules: Sequence[ExpansionRule]
) -> Iterator[tuple[Names, OnnxAlternative]]:
    """Yield the options of an operator, the default first: names of the expansions, and what it becomes by them."""
    found = [each for way in op.expansions for each in _within(op, way) if _is_left(op, each[0], default, rules)]
    if not found:
        raise UserError(f"--expand: nothing is left of the expansions of operator {op.origin!r} ({op.op_type})")
    is_default = [all(default.get(op_type, name) == name for op_type, name in names) for names, _ in found]
    first = is_default.index(True) if True in is_default else 0
    yield found.pop(first)
    yield from found


def _within(op: OperatorAlternatives, alternative: OnnxAlternative) -> Iterator[tuple[Names, OnnxAlternative]]:
    """Yield an expansion with every expansion of the canonical operators within; those of one type have the same."""
    inner: dict[str, list[str]] = {}
    for each in alternative.operators:
        known = inner.setdefault(each.op_type, list(each.scopes))
        inner[each.op_type] = [name for name in known if name in each.scopes]
    for picked in product(*inner.values()):
        chosen = dict(zip(inner, picked, strict=True))
        operators = tuple(
            replace(each, scopes=MappingProxyType({chosen[each.op_type]: each.scopes[chosen[each.op_type]]}))
            for each in alternative.operators
        )
        names = dict.fromkeys([op.op_type], alternative.name) if op.op_type not in chosen else {}
        yield tuple({**names, **chosen}.items()), replace(alternative, operators=operators)


def _is_left(
    op: OperatorAlternatives, names: Names, default: Mapping[str, str], rules: Sequence[ExpansionRule]
) -> bool:
    if not rules:
        return True
    for op_type, name in names:
        fitting = [(fit, rule.names) for rule in rules if (fit := _fit(rule, op_type, op.origin)) is not None]
        if fitting and name not in min(fitting)[1]:
            return False
        if not fitting and default.get(op_type, name) != name:
            return False
    return True


def _fit(rule: ExpansionRule, op_type: str, origin: str) -> int | None:
    """Return how well a rule fits an operator, the smaller the better; ``None``: it is about others."""
    return Choice(rule.op_type, "", rule.origin).fit(op_type, origin)


def _check_rules(known: KnownAlternatives, rules: Sequence[ExpansionRule]) -> None:
    present: dict[tuple[str, str], set[str]] = {}
    for op in known.operators:
        for each in op.expansions:
            for names, _ in _within(op, each):
                for op_type, name in names:
                    present.setdefault((op.origin, op_type), set()).add(name)
    for rule in rules:
        fitting = [names for (origin, op_type), names in present.items() if _fit(rule, op_type, origin) is not None]
        if not fitting:
            keys = sorted({op_type for _, op_type in present} | {f"{origin}:{kind}" for origin, kind in present})
            raise UserError(f"--expand {rule.key}: no such operator in the model{nearest(rule.key, keys)}")
        offered = sorted(set().union(*fitting))
        for name in rule.names:
            if name not in offered:
                raise UserError(f"--expand {rule.key}={name}: unknown{nearest(name, offered)}")

"""What is chosen from: expansions and granularities of all operators of a model together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from msgspec import Struct

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.families import MOST_TASKS, divisions
from dfcompile.canonical_dag.extraction.scopes import MapScope
from dfcompile.expansion_names import base_name
from dfcompile.frontend import CANONICAL, ONNX, ChosenExpansion
from dfcompile.lowering import ExpansionTable, KnownAlternatives, OperatorAlternatives
from dfcompile.lowering.alternatives.known import CanonicalAlternatives
from dfcompile.options import Choice, ExpansionRule
from dfcompile.records import replace

_ROOM = 4  # times as many tasks as if every scope has the fewest pieces
MOST_PER_ELEMENT = 16  # pieces: more are more to schedule, and hardly fill better
_FEWER = 4  # pieces, one in so many elements: where memory bounds the time they need less of it
_SLACK = (100, 20)  # fewer pieces may take longer by one part in so many
PIECES_PER_ELEMENT = (1, 4)  # of a scope: fewer leave elements idle at its end, more cost time to schedule
_MOST_COMBINATIONS = 4_096  # of expansions; beyond that types are varied together


class Candidate(Struct, frozen=True):
    """A choice for a whole model.

    Attributes:
        choices: of expansions, those of single operators first.
        granularity: of the tasks.
    """

    choices: tuple[Choice, ...]
    granularity: Granularity

    def __str__(self) -> str:
        return " ".join((*map(str, self.choices), str(self.granularity)))


class Space(Struct, frozen=True):
    """All that may be chosen.

    Attributes:
        onnx: expansions that a type of the model's operators may have, several of each type.
        canonical: the same of canonical operators that these become.
        single: of an expansion of a type, what operators that it does not take have instead.
        fixed: choices of the user, which everything has.
        granularities: that all scopes may have together.
    """

    onnx: Mapping[str, tuple[str, ...]]
    canonical: Mapping[str, tuple[str, ...]]
    single: Mapping[tuple[str, str], tuple[Choice, ...]]
    fixed: tuple[Choice, ...]
    granularities: tuple[Granularity, ...]

    def uniform(self) -> Iterator[Candidate]:
        """Yield the defaults, then every expansion of every type with every other, each in every granularity.

        Parametric ones suit single shapes, and are left to single operators where a type has others. Of so many types
        that this would be too much the last are varied together instead of with one another.
        """
        combinations = dict.fromkeys([(), *self._combinations()])
        for granularity in self.granularities:
            for choices in combinations:
                yield Candidate(self._complete(choices), granularity)

    def _combinations(self) -> Iterator[tuple[Choice, ...]]:
        apart: list[list[Choice]] = []
        together: list[list[Choice]] = []
        for op_type, names in self._types():
            options = [Choice(op_type, name) for name in names]
            count = prod(map(len, (*apart, options)))
            (apart if count <= _MOST_COMBINATIONS else together).append(options)
        for choices in product(*apart):
            for number in range(max(map(len, together), default=1)):
                yield (*choices, *(options[number % len(options)] for options in together))

    def covering(self) -> Iterator[tuple[Choice, ...]]:
        """Yield few choices under which each operator is lowered in all its ways.

        Types of the model's operators do not depend on one another, so they are varied together; the canonical
        operators likewise, under each expansion of what they come of.
        """
        for first in range(_most(self.onnx)):
            for second in range(_most(self.canonical)):
                yield self._varied(first, second)

    def glancing(self) -> Iterator[tuple[Choice, ...]]:
        """Yield the least number of choices that have every expansion of every type."""
        for number in range(max(_most(self.onnx), _most(self.canonical))):
            yield self._varied(number, number)

    def _varied(self, first: int, second: int) -> tuple[Choice, ...]:
        outer = (Choice(op_type, names[first % len(names)]) for op_type, names in self.onnx.items())
        inner = (Choice(op_type, names[second % len(names)]) for op_type, names in self.canonical.items())
        return self._complete((*outer, *inner))

    def in_parts(self, choices: tuple[Choice, ...], count: int) -> tuple[Choice, ...]:
        """Return choices with parametric expansions of so many parts for all canonical operators that have them."""
        names = {of: name for of, known in self.canonical.items() for name in known if name.endswith(f"={count}}}")}
        others = (choice for choice in choices if choice.op_type not in names or choice in self.fixed)
        return (*others, *(Choice(op_type, name) for op_type, name in names.items()))

    def expansions_of(self, chosen: Iterable[ChosenExpansion]) -> dict[str, dict[str, str]]:
        """Return the expansions by operator and type, of types that offer several."""
        found: dict[str, dict[str, str]] = {}
        for each in chosen:
            names = (*self.onnx.get(each.op_type, ()), *self.canonical.get(each.op_type, ()))
            if each.name in names:  # a type of the model may be that of a canonical operator as well
                found.setdefault(each.origin, {}).setdefault(each.op_type, each.name)
        return found

    def _types(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield from self.onnx.items()
        for op_type, names in self.canonical.items():
            alone = tuple(name for name in names if base_name(name) == name)
            yield op_type, alone or names

    def _complete(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        instead = (other for choice in choices for other in self.single.get((choice.op_type, choice.name), ()))
        return (*self.fixed, *instead, *choices)


def _most(names: Mapping[str, tuple[str, ...]]) -> int:
    return max((len(each) for each in names.values()), default=1)


def granularities(pes: int, scopes: int = 1, most_tasks: int = 0) -> tuple[Granularity, ...]:
    """Return the granularities that are looked at on P processing elements.

    Args:
        pes: P.
        scopes: that the model has at least.
        most_tasks: that a choice may have, if that limits it: where 4 P pieces of each scope are more, 2 P are looked
            at as well; where P are more, fewer, P halved as often as needed, and a quarter of that, which leaves tasks
            for others.
    """
    pieces = [pes * times for times in PIECES_PER_ELEMENT]
    if most_tasks and pieces[-1] * scopes > most_tasks:
        pieces.append(2 * pes)
    fewer = pes
    while most_tasks and fewer > 1 and fewer * scopes > most_tasks:
        fewer //= 2
    if fewer < pes:
        pieces += [fewer, max(fewer // _ROOM, 1)]
    return (Granularity(), *(Granularity(pieces=each) for each in dict.fromkeys(pieces)))


def space_of(
    known: KnownAlternatives,
    table: ExpansionTable,
    rules: Sequence[ExpansionRule],
    granularities: Sequence[Granularity],
    pes: int,
    *,
    has_all_values: bool = False,
) -> Space:
    """Return what may be chosen for a model.

    Args:
        known: its operators, each under the expansions that take it.
        table: what is registered.
        rules: of the user: a rule of one name is kept, one of several limits what is chosen from.
        granularities: that are looked at.
        pes: number of processing elements P.
        has_all_values: whether all values of parametric expansions are looked at, or those that suit P.
    """
    fixed = tuple(Choice(rule.op_type, rule.names[0], rule.origin) for rule in rules if len(rule.names) == 1)
    limits = {rule.op_type: rule.names for rule in rules if not rule.origin}
    onnx: dict[str, set[str]] = {}
    canonical: dict[str, set[str]] = {}
    for op in known.operators:
        onnx.setdefault(op.op_type, set()).update(_names(op))
        for inner in (inner for each in op.expansions for inner in each.operators):
            canonical.setdefault(inner.op_type, set()).update(inner.scopes if has_all_values else _suited(inner, pes))
    of_model = _several(table, ONNX, onnx, limits)
    keys = ((op_type, name) for op_type, names in of_model.items() for name in names)
    single = {key: _instead(known, *key) for key in keys}
    return Space(of_model, _several(table, CANONICAL, canonical, limits), single, fixed, tuple(granularities))


def _several(
    table: ExpansionTable, dialect: str, taken: Mapping[str, set[str]], limits: Mapping[str, Sequence[str]]
) -> Mapping[str, tuple[str, ...]]:
    """Return the expansions of each type that has several; those that take no operator only where a rule names them."""
    found = {}
    for op_type in sorted(taken):
        registered = table.by_operator.get((dialect, op_type), {})
        names = tuple(name for name in registered if name in limits.get(op_type, taken[op_type]))
        if len(names) > 1:
            found[op_type] = names
    return found


def _suited(op: CanonicalAlternatives, pes: int) -> Iterator[str]:
    """Yield the expansions of a canonical operator, of a parametric one the values that suit P elements.

    These give the fewest tasks, but one for each piece into which scopes are cut. Where results alone are as many, no
    more tasks are needed.
    """
    parametric: dict[str, list[tuple[int, str]]] = {}
    for name, scopes in op.scopes.items():
        if base_name(name) == name:
            yield name
        elif scopes[-1].members * scopes[-1].written < pes * PIECES_PER_ELEMENT[-1]:
            parametric.setdefault(base_name(name), []).append((max(scope.members for scope in scopes), name))
    for values in parametric.values():
        most = max(tasks for tasks, _ in values)
        for times in PIECES_PER_ELEMENT:
            yield next(name for tasks, name in values if tasks >= min(pes * times, most))


def _instead(known: KnownAlternatives, op_type: str, name: str) -> tuple[Choice, ...]:
    """Return the expansions of the operators of a type that one does not take."""
    refused = [op for op in known.operators if op.op_type == op_type and name not in _names(op)]
    return tuple(Choice(op_type, _names(op)[0], op.origin) for op in refused)


def _names(op: OperatorAlternatives) -> tuple[str, ...]:
    return tuple(each.name for each in op.expansions)


def fitting_pieces(scopes: Sequence[MapScope], pes: int) -> tuple[int, ...]:
    """Return the numbers of pieces in which the largest of some scopes takes least time, fewer that nearly do, and few.

    Tasks run in rounds of P; all rounds take as long as the longest task.

    Args:
        scopes: of an operator.
        pes: number of processing elements P.
    """
    largest = max(scopes, key=lambda scope: prod(scope.extents))
    return _fitting(replace(largest, name="", origin="", kernel=None, reads=()), pes)


@lru_cache(4096)
def _fitting(scope: MapScope, pes: int) -> tuple[int, ...]:
    times: dict[int, int] = {}  # of so many tasks
    for family in divisions(scope, dict.fromkeys(numbers_of_pieces(scope.extents, MOST_PER_ELEMENT * pes))):
        if family.members > MOST_TASKS:  # more than a canonical DAG can hold
            continue
        longest = prod(cut.size for cut in family.cuts)
        times.setdefault(family.members, -(-family.members // pes) * longest)
    least = min(times.values(), default=0)
    found = [min(tasks for tasks, time in times.items() if time * part <= least * (part + 1)) for part in _SLACK]
    return tuple(dict.fromkeys((*found, max(pes // _FEWER, 1)))) if times else ()


def numbers_of_pieces(extents: Sequence[int], most: int) -> Iterator[int]:
    """Yield the numbers of pieces that cut whole outer loops, and the one behind them in chunks of every size."""
    outer = 1
    for extent in extents:
        if outer > most:
            return
        size = 1
        while size <= extent:
            chunks = -(-extent // size)
            if outer * chunks <= most:
                yield outer * chunks
            size = max(size + 1, -(-extent // (chunks - 1)) if chunks > 1 else extent + 1)
        outer *= extent

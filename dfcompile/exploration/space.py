"""The space of expansions: operators of one shape, ways to lower these, and what parts of the space take at least."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily, divide
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.choosing.estimate import estimate
from dfcompile.errors import UserError, nearest
from dfcompile.exploration.asked import Asked, Figures, figures_of
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.bound import divided_bound, expansion_bound
from dfcompile.lowering.alternatives.known import OnnxAlternative, OperatorAlternatives
from dfcompile.lowering.alternatives.outlined import Outline, OutlinedModel
from dfcompile.options import Choice, ExpansionRule, Volumes
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

    def tasks(self, picks: Sequence[int]) -> int:
        """Return the number of tasks of the first groups under an option each, as declared."""
        return sum(group.tasks(pick) for group, pick in zip(self.groups, picks, strict=False))

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
    found = [each for way in op.expansions for each in _within(op, way) if _is_left(op.origin, each[0], default, rules)]
    if not found:
        raise UserError(f"--expand: nothing is left of the expansions of operator {op.origin!r} ({op.op_type})")
    is_default = [all(default.get(op_type, name) == name for op_type, name in names) for names, _ in found]
    yield found.pop(is_default.index(True) if True in is_default else 0)
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


def _is_left(origin: str, names: Names, default: Mapping[str, str], rules: Sequence[ExpansionRule]) -> bool:
    if not rules:
        return True
    for op_type, name in names:
        fitting = [(fit, rule.names) for rule in rules if (fit := _fit(rule, op_type, origin)) is not None]
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


class Bounds:
    """Bounds of parts of a space; each is found once."""

    def __init__(self, asked: Asked, space: Space, outlined: OutlinedModel) -> None:
        """Look at the options of all groups.

        Args:
            asked: of the user.
            space: of expansions.
            outlined: the model.
        """
        self._asked, self._space, self._outlined = asked, space, outlined
        self._io = [_LeastIo(space, outlined, granularity, asked.memories) for granularity in asked.granularities]
        self._least_cycles = cache(
            lambda picks, pes, is_cut: (
                (divided_bound if is_cut else expansion_bound)(space.restricted(picks), pes).cycles
            )
        )

    def of(self, picks: Sequence[int | None], granularity: int, pes: int) -> tuple[Figures, ...]:
        """Return what every lowering takes at least for which some groups have one option, for each memory.

        Args:
            picks: option of each group, or any.
            granularity: number of it.
            pes: number of processing elements.
        """
        chosen = self._asked.granularities[granularity]
        # Less is sure where scopes are cut into more tasks than declared.
        is_cut = chosen.split is not None or chosen.pieces is not None or bool(chosen.own)
        return self._figures(self._least_cycles(picks, pes, is_cut), self._io[granularity].of(picks), pes)

    def estimated(self, picks: Sequence[int], granularity: int, pes: int) -> tuple[Figures, ...]:
        """Return what a lowering is estimated to take, for each memory: its makespan; of I/O what is sure."""
        graph = self._outlined.outline(choices_of(self._space.groups, picks)).graph
        cycles = estimated_cycles(graph, self._asked.granularities[granularity], pes)
        return self._figures(cycles, self._io[granularity].of(picks), pes)

    def _figures(self, makespan: int, io_bytes: Sequence[int], pes: int) -> tuple[Figures, ...]:
        return tuple(
            figures_of(self._asked.objectives, self._asked.machine(pes, memory), makespan, least)
            for memory, least in zip(self._asked.memories, io_bytes, strict=True)
        )


def estimated_cycles(graph: LoweredGraph, granularity: Granularity, pes: int) -> int:
    """Return the cycles that a lowering is estimated to take on a number of processing elements.

    Raises:
        UserError: it has more tasks than a canonical DAG can hold.
    """
    return estimate(flow_of(graph, ExtractionOptions(Volumes.EXACT, granularity)), pes).cycles


class _LeastIo:
    """Bytes that operators move off the chip at least, under each of their options.

    Counted is what certainly passes through memory: what the model reads or gives back, what must be stored, and what a
    task reads several times, which no stream carries. An array that is larger than the memory on the chip moves each
    time that it is read or written; a smaller one may be on the chip, so that a result leaves once, and what only one
    operator reads comes once.
    """

    def __init__(
        self, space: Space, outlined: OutlinedModel, granularity: Granularity, memories: Sequence[int]
    ) -> None:
        """Look at every option of every group once; others do not depend on it.

        Args:
            space: of expansions.
            outlined: the model.
            granularity: of the tasks.
            memories: bytes of on-chip memory.
        """
        self._granularity, self._memories = granularity, np.array(memories, dtype=np.int64)
        most = max((len(group.options) for group in space.groups), default=1)
        grouped = {origin for group in space.groups for origin in group.origins}
        self._options: list[list[Int64]] = [[] for _ in space.groups]
        self._others = self._nothing = np.zeros(len(memories), dtype=np.int64)
        for turn in range(most):
            picks = [min(turn, len(group.options) - 1) for group in space.groups]
            graph = outlined.outline(choices_of(space.groups, picks)).graph
            by_origin: dict[str, list[MapScope]] = {}
            for scope in graph.scopes:
                by_origin.setdefault(scope.origin, []).append(scope)
            external = _external(graph)
            for group, options in zip(space.groups, self._options, strict=True):
                if turn < len(group.options):
                    own = (self._of(by_origin.get(origin, []), graph.arrays, external) for origin in group.origins)
                    options.append(sum(own, start=self._nothing))
            if turn == 0:
                rest = (self._of(own, graph.arrays, external) for name, own in by_origin.items() if name not in grouped)
                self._others = sum(rest, start=self._nothing)
        self._least: list[Int64] = [np.min(options, axis=0) for options in self._options]

    def of(self, picks: Sequence[int | None]) -> tuple[int, ...]:
        """Return the bytes for each amount of memory if some groups have one option, the others any."""
        groups = zip(picks, self._options, self._least, strict=True)
        own = (least if pick is None else options[pick] for pick, options, least in groups)
        return tuple(sum(own, start=self._others).tolist())

    def _of(self, scopes: Sequence[MapScope], arrays: Mapping[str, Array], external: Mapping[str, int]) -> Int64:
        """Return the bytes of the scopes of one operator for each amount of memory."""
        total = self._nothing
        comes: dict[str, int] = {}  # inputs and weights that only this operator reads
        for family in divide(scopes, self._granularity):
            for access, moved, is_read in _certain(family, arrays, is_split=self._granularity.split is not None):
                array = arrays[access.array]
                size = array.elements * array.element_bytes
                if is_read and external.get(access.array) == 1:
                    comes[access.array] = max(comes.get(access.array, 0), min(size, moved))
                is_result = not is_read and not array.is_transient
                total = total + moved * (is_result | (size > self._memories))
        for name, moved in comes.items():
            total = total + moved * (arrays[name].elements * arrays[name].element_bytes <= self._memories)
        return total


def _external(graph: LoweredGraph) -> Mapping[str, int]:
    """Return the arrays that no scope writes, and how many operators read them."""
    written = {access.array for scope in graph.scopes for access in scope.writes}
    readers: dict[str, set[str]] = {}
    for scope in graph.scopes:
        for access in scope.reads:
            if access.array not in written:
                readers.setdefault(access.array, set()).add(scope.origin)
    return {name: len(origins) for name, origins in readers.items()}


def _certain(family: TaskFamily, arrays: Mapping[str, Array], *, is_split: bool) -> Iterator[tuple[Access, int, bool]]:
    """Yield what the tasks of a scope certainly read from memory or write there, in bytes; whether they read it."""
    for access in family.scope.reads:
        array = arrays[access.array]
        repeats = not is_split and not access.is_indirect and not family.member(access).is_injective
        if access.is_indirect or not array.is_transient or array.is_materialised or repeats:
            yield access, family.iterations().total * array.element_bytes, True
    for access in family.scope.writes:
        array = arrays[access.array]
        if not array.is_transient or array.is_materialised:
            yield access, family.written(access).total * array.element_bytes, False

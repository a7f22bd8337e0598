"""The ways to lower and divide one operator, each estimated as if it had the machine for itself."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod
from sys import maxsize

from msgspec import Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily, are_large, divide
from dfcompile.canonical_dag.extraction.flow import Flow, uses_of
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.choosing.candidate import MOST_PER_ELEMENT, Space, fitting_pieces, numbers_of_pieces
from dfcompile.choosing.estimate import Estimate, estimate, families_of, least_traffic
from dfcompile.choosing.placing import Family
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.errors import UserError
from dfcompile.expansion_names import base_name
from dfcompile.host.stages import counted
from dfcompile.lowering.alternatives.outlined import Outline
from dfcompile.options import Choice
from dfcompile.records import replace

_LESS_DRAM = 4  # a cycle of DRAM counts as one in so many of tasks where most operators need less of it
_HARDLY_LESS = 100  # of its cycles, one part in so many: twice as many tasks are not worth it
_MORE_WORK = 2  # times as much, or less, as the lowering of least work: in which all numbers of pieces are looked at

Cost = Callable[[Estimate], int]  # of what an operator takes alone


def time_alone(alone: Estimate) -> int:
    """Return the cycles of an operator's tasks or of DRAM, whichever are more."""
    return alone.time


def cycles_alone(alone: Estimate) -> int:
    """Return the cycles of its tasks: while they run DRAM has time for other operators, which need less of it."""
    return alone.cycles


def both_alone(alone: Estimate) -> int:
    """Return the cycles of its tasks and of DRAM together: of both the others need as much."""
    return alone.cycles + alone.memory_cycles


def mostly_cycles(alone: Estimate) -> int:
    """Return the cycles of its tasks and some of those of DRAM: of these the others need less."""
    return alone.cycles + alone.memory_cycles // _LESS_DRAM


Names = tuple[tuple[str, str], ...]  # operator type and expansion, level after level


class OperatorOption(Struct, frozen=True):
    """A way to lower and divide an operator.

    Attributes:
        expansions: of it and of the canonical operators in it that offer several.
        pieces: of each of its scopes, at most; ``None``: as declared.
        alone: what it takes if everything it reads is there.
        rest: of its scopes with less than half the iterations of the largest; ``None``: as of the others.
    """

    expansions: Names
    pieces: int | None
    alone: Estimate
    rest: int | None = None

    def choices(self, origin: str) -> tuple[Choice, ...]:
        """Return the choices that give it."""
        return tuple(Choice(op_type, name, origin) for op_type, name in self.expansions)

    def is_of(self, origin: str, expansions: Mapping[str, str], granularity: Granularity) -> bool:
        """Return whether an operator has it, of which the expansions and of the model the granularity are known."""
        pieces, rest = granularity.pieces_of(origin), granularity.rest_of(origin)
        return (self.pieces, self.rest) == (pieces, rest) and dict(self.expansions) == dict(expansions)


class OperatorOptions(Struct, frozen=True, dict=True):
    """Operators of one shape, and the ways to lower each of them.

    Attributes:
        origins: the user's operators.
        known: the ways that were estimated.
        excluded: those of which what they take at least says that they are no better than others, or hardly; that
            stands for their estimate.
    """

    origins: tuple[str, ...]
    known: tuple[OperatorOption, ...]
    excluded: tuple[OperatorOption, ...] = ()

    def options(self, cost: Cost) -> tuple[OperatorOption, ...]:
        """Return those of more and more tasks and less and less cost; others are not worth their tasks."""
        front: list[OperatorOption] = []
        for option in sorted(
            self.known, key=lambda each: (each.alone.tasks, cost(each.alone), each.alone.memory_cycles)
        ):
            if not front or cost(option.alone) < cost(front[-1].alone):
                front.append(option)
        return tuple(front)

    @cached_property
    def fronts(self) -> tuple[OperatorOption, ...]:
        """Those that no other one of as few tasks beats both in cycles of tasks and in those of DRAM."""
        front: list[OperatorOption] = []
        for option in sorted(
            self.known, key=lambda each: (each.alone.tasks, each.alone.cycles, each.alone.memory_cycles)
        ):
            alone = option.alone
            if all(
                alone.cycles < other.alone.cycles or alone.memory_cycles < other.alone.memory_cycles for other in front
            ):
                front.append(option)
        return tuple(front)

    def without(self, pieces: int) -> "OperatorOptions":
        """Return them without the options of so many pieces, if there are others."""
        known = tuple(option for option in self.known if option.pieces != pieces)
        return OperatorOptions(self.origins, known or self.known)

    @cached_property
    def plain(self) -> "OperatorOptions":
        """Them without the options of parametric expansions, if there are others."""
        known = tuple(option for option in self.known if all(base_name(name) == name for _, name in option.expansions))
        return OperatorOptions(self.origins, known) if known and known != self.known else self


class _Part(Struct, frozen=True, dict=True):
    """The scopes of one operator and their arrays without names: what it takes depends on nothing else.

    What others write for it, or read of it, is in memory.
    """

    scopes: tuple[MapScope, ...]
    arrays: tuple[Array, ...]

    @classmethod
    def of(cls, graph: LoweredGraph, scopes: Sequence[MapScope]) -> "_Part":
        """Return what some scopes of a model are by themselves."""
        written = {access.array for scope in scopes for access in scope.writes}
        read = {access.array for scope in scopes for access in scope.reads}
        used = dict.fromkeys(access.array for scope in scopes for access in (*scope.reads, *scope.writes))
        names = {name: str(number) for number, name in enumerate(used)}

        def told(accesses: Iterable[Access]) -> tuple[Access, ...]:
            return tuple(replace(access, array=names[access.array]) for access in accesses)

        nameless = (
            replace(scope, name="", origin="", kernel=None, reads=told(scope.reads), writes=told(scope.writes))
            for scope in scopes
        )
        arrays = (
            replace(graph.arrays[name], name=number)
            if name in written & read
            else replace(graph.arrays[name], name=number, is_transient=False, is_materialised=True)
            for name, number in names.items()
        )
        return cls(tuple(nameless), tuple(arrays))

    @cached_property
    def by_name(self) -> Mapping[str, Array]:
        """Its arrays by their names."""
        return {array.name: array for array in self.arrays}

    @property
    def work(self) -> int:
        """Iterations of all scopes."""
        return sum(prod(scope.extents) for scope in self.scopes)

    @cached_property
    def moved_bytes(self) -> int:
        """What is read and not made, and what is made and stays: the elements that are touched, once."""
        taken: dict[str, int] = {}
        for scope in self.scopes:
            for access in (*scope.reads, *scope.writes):
                touched = TaskFamily(scope, (), is_single=True).taken(access)
                taken[access.array] = max(taken.get(access.array, 0), touched)
        stored = (array for array in self.arrays if not array.is_transient)
        return sum(min(taken[array.name], array.elements) * array.element_bytes for array in stored)

    @property
    def shape(self) -> tuple[object, ...]:
        """What operators have in common that get the same options."""

        def told(access: Access) -> tuple[object, ...]:
            return access.array, access.base, access.strides, access.is_indirect

        scopes = tuple(
            (scope.extents, scope.is_spatial, tuple(map(told, scope.reads)), tuple(map(told, scope.writes)))
            for scope in self.scopes
        )
        return scopes, tuple((array.shape, array.is_transient, array.is_materialised) for array in self.arrays)


@lru_cache(4096)  # some KB each; several numbers of processing elements have many in common
def _flow(part: _Part, options: ExtractionOptions) -> tuple[Flow, list[Family]] | None:
    """Return the flow of an operator's families; ``None``: more tasks than a canonical DAG can hold."""
    try:
        flow = flow_of(LoweredGraph("", part.scopes, part.by_name), options)
        return flow, families_of(flow)
    except UserError:
        return None


def _is_excluded(least: Estimate, known: Iterable[OperatorOption]) -> bool:
    """Return whether an option has no fewer tasks than a known one and takes no less, given what it takes at least.

    With at least twice as many tasks it has to take less by more than a small part.
    """
    more = least.cycles // _HARDLY_LESS, least.memory_cycles // _HARDLY_LESS
    for alone in (each.alone for each in known if each.alone.tasks <= least.tasks):
        slack = more if 2 * alone.tasks <= least.tasks else (0, 0)
        if alone.cycles <= least.cycles + slack[0] and alone.memory_cycles <= least.memory_cycles + slack[1]:
            return True
    return False


def _at_least(least: Estimate) -> tuple[int, int, int]:
    """Return what puts first what takes least at least."""
    return least.time, least.cycles + least.memory_cycles, least.tasks


def _for_one(granularity: Granularity, origin: str) -> Granularity:
    """Return what is said of one operator, as `_Part` names it."""
    rest = granularity.rest_of(origin)
    own = tuple(("", pieces) for each, pieces in granularity.own if each == origin)
    return replace(granularity, own=own, rest=() if rest is None else (("", rest),))


class OptionTable:
    """Collects options; operators of one shape are looked at once."""

    def __init__(self, space: Space, sketches: Sketches, *, has_all_pieces: bool = False) -> None:
        """Begin without any.

        Args:
            space: all that may be chosen.
            sketches: of the model on a number of processing elements.
            has_all_pieces: whether all numbers of pieces are looked at that the user left open.
        """
        self._space, self._sketches, self._has_all_pieces = space, sketches, has_all_pieces
        self._parts: dict[str, dict[Names, _Part]] = {}  # by origin
        self._own = dict(space.granularities[0].own)  # of the user, who leaves these operators no other
        self._estimates: dict[tuple[_Part, Granularity], Estimate | None] = {}

    def add(self, outline: Outline) -> None:
        """Note what each operator becomes under a choice for the whole model."""
        names = self._space.expansions_of(outline.chosen)
        scopes: dict[str, list[MapScope]] = {}
        for scope in outline.graph.scopes:
            scopes.setdefault(scope.origin, []).append(scope)
        for origin, own in scopes.items():
            key = tuple(names.get(origin, {}).items())
            parts = self._parts.setdefault(origin, {})
            if key not in parts:
                parts[key] = _Part.of(outline.graph, own)

    def options(self) -> tuple[OperatorOptions, ...]:
        """Return the options of all operators, those of one shape together."""
        origins: dict[tuple[object, ...], list[str]] = {}
        for origin, parts in self._parts.items():
            shape = tuple((names, part.shape) for names, part in parts.items())
            origins.setdefault((shape, self._fixed(origin)), []).append(origin)
        return tuple(OperatorOptions(tuple(equal), *self._known(equal[0])) for equal in counted(origins.values()))

    def including(self, operators: Sequence[OperatorOptions], sketch: Sketch) -> tuple[OperatorOptions, ...]:
        """Return options with those of a choice for the whole model, which are estimated if they were excluded."""
        names, granularity = self._space.expansions_of(sketch.outline.chosen), sketch.candidate.granularity
        found = []
        for each in operators:
            origin, known = each.origins[0], list(each.known)
            chosen = [option for option in each.excluded if option.is_of(origin, names.get(origin, {}), granularity)]
            for option in chosen:
                own = Granularity(pieces=option.pieces, rest=() if option.rest is None else (("", option.rest),))
                alone = self._estimate(self._parts[origin][option.expansions], own)
                known += () if alone is None else (replace(option, alone=alone),)
            left = tuple(option for option in each.excluded if option not in chosen)
            found.append(OperatorOptions(each.origins, tuple(known), left) if chosen else each)
        return tuple(found)

    def _fixed(self, origin: str) -> tuple[int | None, ...]:
        """Return into how many pieces the user wants an operator, and of the rest of it, if anything is said of it."""
        own = self._space.granularities[0]
        return (self._own[origin], own.rest_of(origin)) if origin in self._own else ()

    def _known(self, origin: str) -> tuple[tuple[OperatorOption, ...], tuple[OperatorOption, ...]]:
        """Return the options of an operator that are estimated, and those that are excluded by what they take at least.

        Those that take least at least are estimated first. Of each lowering one is, so that it can be compared.
        """
        asked = [
            (OperatorOption(names, granularity.pieces_of(origin), least, granularity.rest_of(origin)), granularity)
            for names, part in self._parts[origin].items()
            for granularity in self._granularities(origin, part)
            if (least := self._least(part, _for_one(granularity, origin))) is not None
        ]
        found: dict[int, OperatorOption] = {}
        excluded: dict[int, OperatorOption] = {}
        compared: set[Names] = set()
        for number, (option, granularity) in sorted(enumerate(asked), key=lambda each: _at_least(each[1][0].alone)):
            names, single = option.expansions, _for_one(granularity, origin)
            part = self._parts[origin][names]
            may_go = names in compared and not self._has_all_pieces
            if may_go and self._excludes(found.values(), option.alone, part, single):
                excluded[number] = option
                continue
            alone = self._estimate(part, single)
            if alone is not None:
                found[number] = replace(option, alone=alone)
                compared.add(names)
        known = list[OperatorOption]()
        is_given = len(self._space.granularities) == 1 or bool(self._fixed(origin))  # by the user
        for names, part in self._parts[origin].items():
            own = [found[number] for number in sorted(found) if found[number].expansions == names]
            known += own
            known += () if is_given else self._in_short_tasks(names, part, own)
        return tuple(known), tuple(excluded[number] for number in sorted(excluded))

    def _least(self, part: _Part, granularity: Granularity) -> Estimate | None:
        """Return what the tasks of an operator take at least; ``None``: more than a canonical DAG can hold."""
        pes, memory = self._sketches.pes, self._sketches.memory
        try:
            families = divide(part.scopes, granularity)
            # Without reads a task may do less than its iterations; so may a single one that takes several streams.
            tasks = [family.iterations() for family in families if family.scope.reads and family.members > 1]
        except UserError:
            return None
        work = sum(each.total for each in tasks)
        longest = (-(-(each.members - each.shorter) // pes) * each.whole for each in tasks)  # in rounds of P
        least = max([-(-work // pes), *longest, *(each.last for each in tasks)])
        moved = 0 if memory is None else memory.cycles(part.moved_bytes)
        return Estimate(least, least, work, sum(family.members for family in families), memory_cycles=moved)

    def _excludes(self, known: Collection[OperatorOption], least: Estimate, part: _Part, single: Granularity) -> bool:
        """Return whether what an operator takes at least, or also what DRAM moves for these tasks, excludes it."""
        if _is_excluded(least, known):
            return True
        memory = self._sketches.memory
        if memory is None or not _is_excluded(replace(least, memory_cycles=maxsize), known):
            return False  # however much is moved
        families = divide(part.scopes, single)
        moved = least_traffic(families, uses_of(families, part.by_name), self._sketches.pes, memory)
        return _is_excluded(replace(least, memory_cycles=max(memory.cycles(moved), least.memory_cycles)), known)

    def _in_short_tasks(self, names: Names, part: _Part, known: Sequence[OperatorOption]) -> Iterator[OperatorOption]:
        """Yield options of more pieces, if a lowering works on slices and waits for DRAM, until it no longer waits.

        The more tasks work on a slice, the fewer slices are in memory at a time.
        """
        least = min((each.alone for each in known), key=lambda alone: alone.time, default=None)
        if least is None or 2 * least.apart_cycles <= least.work_cycles:
            return
        largest = max(part.scopes, key=lambda scope: prod(scope.extents))
        pieces = next((extent for extent in largest.extents if extent > 1), 1)
        most = max(each.pieces or 0 for each in known)
        while least.waits_for_dram and 2 * pieces <= MOST_PER_ELEMENT * self._sketches.pes:
            pieces *= 2
            if pieces <= most:
                continue
            found = self._estimate(part, Granularity(pieces=pieces))
            if found is None:
                return
            yield OperatorOption(names, pieces, found)
            least = min(least, found, key=lambda alone: alone.time)

    def _granularities(self, origin: str, part: _Part) -> Sequence[Granularity]:
        """Return those that all scopes may have, and if the user left it open those that fill the elements.

        More pieces than there are elements are looked at for the largest scopes alone, too: these share what they read
        with fewer others at a time, and what is small beside them need not be more tasks.
        """
        every, pes = self._space.granularities, self._sketches.pes
        if self._fixed(origin):
            return every[:1]
        fitting: Iterable[int] = ()
        if len(every) > 1:
            fitting = fitting_pieces(part.scopes, pes)
            least_work = min(each.work for each in self._parts[origin].values())
            if self._has_all_pieces and part.work <= _MORE_WORK * least_work:
                fitting = (n for scope in part.scopes for n in numbers_of_pieces(scope.extents, prod(scope.extents)))
        found = dict.fromkeys((*every, *(Granularity(pieces=pieces) for pieces in fitting)))
        several = dict.fromkeys(each.pieces for each in found if each.pieces is not None and each.pieces > pes)
        if len(every) > 1 and not all(are_large(part.scopes)):
            found |= {Granularity(pieces=pieces, rest=((origin, pes),)): None for pieces in several}
        return tuple(found)

    def _estimate(self, part: _Part, granularity: Granularity) -> Estimate | None:
        key, sketches = (part, granularity), self._sketches
        if key not in self._estimates:
            known = _flow(part, ExtractionOptions(sketches.volumes, granularity))
            if known is None:
                self._estimates[key] = None
            else:
                flow, families = known
                self._estimates[key] = estimate(flow, sketches.pes, memory=sketches.memory, families=families)
        return self._estimates[key]

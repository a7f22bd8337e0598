"""Families of tasks: a map scope divided over its spatial loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.granularity import DECLARED, Granularity
from dfcompile.canonical_dag.extraction.scopes import Access, MapScope
from dfcompile.canonical_dag.extraction.traversal import Loop, Traversal
from dfcompile.errors import UserError

MOST_TASKS = 10**7  # of a canonical DAG: some hundred bytes each
_MOST_ELEMENTS = 2**56  # that the tasks of a scope touch: sums over many scopes still fit into 64 bits
_KEPT = 16384  # divisions of scopes that are known, and numbers of elements: some MB


class Cut(Struct, frozen=True):
    """How one map parameter is divided: ``tasks`` members of ``size`` iterations, the last one of ``last``."""

    tasks: int
    size: int
    last: int


class MemberVolumes(Struct, frozen=True):
    """A number of elements for each member of a family: all alike, or the last one of each row has another number.

    Attributes:
        members: of the family.
        whole: elements of each member that is not the last of a row.
        row: members of a row; where all are alike, all of them.
        last: elements of the last member of each row.
    """

    members: int
    whole: int
    row: int
    last: int

    @classmethod
    def alike(cls, members: int, elements: int) -> MemberVolumes:
        """Return the same number for all."""
        return cls(members, elements, max(members, 1), elements)

    @classmethod
    def largest(cls, members: int, several: Sequence[MemberVolumes]) -> MemberVolumes:
        """Return the largest number that each member has in any of several."""
        if not several:
            return cls.alike(members, 0)
        whole, last = max([each.whole for each in several]), max([each.last for each in several])
        return cls(members, whole, min([each.row for each in several]), last)

    @property
    def is_even(self) -> bool:
        """Whether all members have the same number."""
        return self.whole == self.last

    @property
    def shorter(self) -> int:
        """How many members have another number."""
        return 0 if self.is_even else self.members // self.row

    @property
    def total(self) -> int:
        """Elements of all members."""
        return self.members // self.row * ((self.row - 1) * self.whole + self.last)

    @property
    def first(self) -> int:
        """Elements of member 0."""
        return self.whole if self.row > 1 else self.last

    def resized(self, members: int) -> MemberVolumes:
        """Return the same of as many edges: of member 0 again and again, or as it is."""
        return self if members == self.members else MemberVolumes.alike(members, self.first)

    def column(self) -> Int64:
        """Return the number of each member, shape [members]."""
        volumes = np.full(self.members, self.whole, dtype=np.int64)
        if not self.is_even:
            volumes[self.row - 1 :: self.row] = self.last
        return volumes


class TaskFamily(Struct, frozen=True, dict=True):
    """The tasks of one map scope: one per combination of its spatial loops, numbered row by row.

    At most the innermost spatial loop is cut unevenly, so members are all alike or the last of each row is shorter.
    """

    scope: MapScope
    cuts: tuple[Cut, ...]  # per map parameter
    is_single: bool

    @cached_property
    def members(self) -> int:
        """Number of tasks."""
        return prod(cut.tasks for cut in self.cuts)

    @cached_property
    def is_even(self) -> bool:
        """Whether all members do the same number of iterations."""
        return all(cut.last == cut.size for cut in self.cuts)

    def member(self, access: Access, *, last: bool = False) -> Traversal:
        """Return what member 0 does; or, but for the base, what the shorter last member of a row does."""
        sizes = (cut.last if last else cut.size for cut in self.cuts)
        return Traversal(access.base, tuple(map(Loop, sizes, access.strides)))

    def over_members(self, access: Access) -> tuple[Loop, ...]:
        """Return the loops over the members: how the base of a member's traversal moves."""
        return tuple(Loop(cut.tasks, cut.size * stride) for cut, stride in zip(self.cuts, access.strides, strict=True))

    def places(self, access: Access) -> Int64 | None:
        """Return where in the array each member begins, shape [members]; ``None``: it depends on data."""
        if access.is_indirect:
            return None
        places = np.array([access.base], dtype=np.int64)
        for extent, stride in self.over_members(access):
            places = np.add.outer(places, stride * np.arange(extent, dtype=np.int64)).reshape(-1)
        return places

    def taken(self, access: Access) -> int:
        """Return how many different elements all members touch, at least."""
        everything = None if access.is_indirect else _distinct(self.scope.extents, access.strides)
        return 1 if everything is None else everything

    def iterations(self) -> MemberVolumes:
        """Return the iterations of each member: elements that it reads on every input edge."""
        return self._iterations

    @cached_property
    def _iterations(self) -> MemberVolumes:
        return self._per_member(prod)

    def written(self, access: Access) -> MemberVolumes:
        """Return the distinct elements that each member writes.

        Where places depend on data, every iteration writes an element: none counts as written twice.

        Raises:
            UserError: the write is irregular and too large to count.
        """
        if access in self._written:
            return self._written[access]

        def counted(extents: tuple[int, ...]) -> int:
            found = _distinct(extents, access.strides)
            if found is None:
                name = self.scope.name
                raise UserError(f"scope {name!r}: an irregular write to {access.array!r} against a regular one")
            return found

        each = self._written[access] = self.iterations() if access.is_indirect else self._per_member(counted)
        return each

    @cached_property
    def _written(self) -> dict[Access, MemberVolumes]:
        return {}

    def distinct_in(self, access: Access) -> Int64:
        """Return the different elements that each member reads, at most, shape [members].

        Where places depend on data, or windows overlap in nests too large to count, no element counts as read twice.
        """
        iterations = self.iterations().column()
        if access.is_indirect:
            return iterations
        return np.minimum(iterations, self._per_member(lambda extents: _at_most_distinct(access, extents)).column())

    def distinct_of_first(self, access: Access) -> int:
        """Return the different elements that member 0 reads, at most, as `distinct_in`."""
        return _at_most_distinct(access, tuple(cut.size for cut in self.cuts))

    def _per_member(self, count: Callable[[tuple[int, ...]], int]) -> MemberVolumes:
        """Return what is counted of the extents of each member's loops."""
        whole = count(tuple(cut.size for cut in self.cuts))
        last = whole if self.is_even else count(tuple(cut.last for cut in self.cuts))
        if whole * self.members > _MOST_ELEMENTS:
            found = f"scope {self.scope.name!r}: {whole * self.members} accesses"
            raise UserError(f"{found} against at most {_MOST_ELEMENTS}")
        if whole == last:
            return MemberVolumes.alike(self.members, whole)
        return MemberVolumes(self.members, whole, next(cut.tasks for cut in reversed(self.cuts) if cut.tasks > 1), last)


def _at_most_distinct(access: Access, extents: tuple[int, ...]) -> int:
    counted = _distinct(extents, access.strides)
    return access.over(extents).without_repeats.accesses if counted is None else counted


@lru_cache(_KEPT)
def _distinct(extents: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    return Traversal(0, tuple(map(Loop, extents, strides))).distinct()


def divide(scopes: Sequence[MapScope], granularity: Granularity = DECLARED) -> tuple[TaskFamily, ...]:
    """Divide scopes into tasks: into as many pieces as asked for, or as declared, or fewer in families that are larger.

    Raises:
        UserError: there are too many tasks for the memory; the largest family is named.
    """
    families = tuple(
        divided(scope, granularity.pieces_of(scope.origin, is_large=is_large), granularity.max_tasks)
        for scope, is_large in zip(scopes, are_large(scopes), strict=True)
    )
    _check_count(families)
    return families


def are_large(scopes: Sequence[MapScope]) -> list[bool]:
    """Return which scopes have at least half the iterations of the largest of the same operator."""
    iterations = [prod(scope.extents) for scope in scopes]
    most: dict[str, int] = {}
    for scope, count in zip(scopes, iterations, strict=True):
        most[scope.origin] = max(most.get(scope.origin, 0), count)
    return [2 * count >= most[scope.origin] for scope, count in zip(scopes, iterations, strict=True)]


def finest(scope: MapScope) -> TaskFamily:
    """Divide a scope into as many tasks as any number of pieces, or its own declaration, can give."""
    return _family(scope, _in_pieces(scope.extents, scope.is_spatial, scope.writes, prod(scope.extents)))


@lru_cache(_KEPT)
def divided(scope: MapScope, pieces: int | None, max_tasks: int | None = None) -> TaskFamily:
    """Divide one scope, see `Granularity`, however many tasks that gives."""
    if pieces is not None:
        return _family(scope, _in_pieces(scope.extents, scope.is_spatial, scope.writes, pieces))
    extents = zip(scope.extents, scope.is_spatial, strict=True)
    cuts = tuple(Cut(extent, 1, 1) if is_spatial else Cut(1, extent, extent) for extent, is_spatial in extents)
    declared = TaskFamily(scope, cuts, is_single=not any(scope.is_spatial))
    if max_tasks is not None and declared.members > max_tasks:
        return _family(scope, _cuts(scope.extents, scope.is_spatial, max_tasks))
    return declared


def divisions(scope: MapScope, numbers: Iterable[int]) -> Iterator[TaskFamily]:
    """Yield a scope in so many pieces at most, as `divided`, for each of many numbers; none of them is kept."""
    parallel = zip(scope.is_spatial, _divisible(scope.extents, scope.writes), strict=True)
    divisible = [is_declared or is_parallel for is_declared, is_parallel in parallel]
    return (_family(scope, _cuts(scope.extents, divisible, pieces)) for pieces in numbers)


def split(families: Sequence[TaskFamily], big: Sequence[bool], pieces: int) -> tuple[TaskFamily, ...]:
    """Cut big single tasks along their outermost parallel loops into at most so many tasks each.

    Raises:
        UserError: there are too many tasks for the memory; the largest family is named.
    """
    finer = []
    for family, is_big in zip(families, big, strict=True):
        scope = family.scope
        if is_big and family.is_single:
            finer.append(_family(scope, _cuts(scope.extents, _divisible(scope.extents, scope.writes), pieces)))
        else:
            finer.append(family)
    _check_count(finer)
    return tuple(finer)


def _check_count(families: Sequence[TaskFamily]) -> None:
    total = sum(family.members for family in families)
    if total > MOST_TASKS:
        largest = max(families, key=lambda family: family.members)
        found = f"scope {largest.scope.name!r}: {largest.members} of {total} tasks"
        raise UserError(f"{found} against at most {MOST_TASKS} (of a model: --granularity max-tasks=1024, say)")


@lru_cache(_KEPT)
def _divisible(extents: tuple[int, ...], writes: tuple[Access, ...]) -> tuple[bool, ...]:
    """Return whether each loop can be divided: it and all loops around it write other elements in each iteration."""
    divisible: list[bool] = []
    for parameter, extent in enumerate(extents):
        around = all(divisible)
        is_parallel = all(
            access.strides[parameter] != 0 and access.over(extents).without_repeats.is_injective for access in writes
        )
        divisible.append(around and (extent == 1 or is_parallel))
    return tuple(divisible)


@lru_cache(_KEPT)
def _in_pieces(
    extents: tuple[int, ...], is_spatial: tuple[bool, ...], writes: tuple[Access, ...], pieces: int
) -> tuple[Cut, ...]:
    """Return the cuts of a scope whose loops are divided if they are declared as tasks or can be; see `_cuts`."""
    parallel = zip(is_spatial, _divisible(extents, writes), strict=True)
    return _cuts(extents, [is_declared or is_parallel for is_declared, is_parallel in parallel], pieces)


def _family(scope: MapScope, cuts: tuple[Cut, ...]) -> TaskFamily:
    return TaskFamily(scope, cuts, is_single=all(cut.tasks == 1 for cut in cuts))


def _cuts(extents: Sequence[int], divisible: Sequence[bool], most: int) -> tuple[Cut, ...]:
    """Make tasks of the outermost divisible loops, the last of them in chunks, so that there are at most ``most``."""
    left = most
    cuts = []
    for extent, is_divisible in zip(extents, divisible, strict=True):
        size = -(-extent // left) if is_divisible else extent
        tasks = -(-extent // size)
        cuts.append(Cut(tasks, size, extent - size * (tasks - 1)))
        if is_divisible and extent > 1:
            left = left // tasks if size == 1 else 1
    return tuple(cuts)

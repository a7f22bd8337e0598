"""Accesses: iterations of a map that depend on each other are found, since a map is divided operation by operation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.places import Affine, Container


class _Touched(Struct):
    """What a map reads and writes of one container that is outside of it."""

    name: str
    reads: list[tuple[Affine, ...]] = field(default_factory=list)
    writes: list[tuple[Affine, ...]] = field(default_factory=list)


class Accesses:
    """What the maps around the present operation have touched."""

    def __init__(self) -> None:
        self._maps: list[tuple[frozenset[str], dict[int, _Touched]]] = []
        self._extents: dict[str, int] = {}  # of all loops so far

    def loop(self, name: str, extent: int) -> None:
        """Remember how many iterations a loop has."""
        self._extents[name] = extent

    @contextmanager
    def within(self, loops: Sequence[str]) -> Iterator[None]:
        """Have a map around the body.

        Raises:
            UserError: an iteration reads what another one writes.
        """
        self._maps.append((frozenset(loops), {}))
        yield
        names, touched = self._maps.pop()
        for each in touched.values() if names else ():  # a map of one iteration has no other
            self._check(each, names)

    def read(self, container: Container, indices: tuple[Affine, ...]) -> None:
        """Remember what an operation reads."""
        for touched in self._around(container):
            touched.reads.append(indices)

    def write(self, container: Container, indices: tuple[Affine, ...]) -> None:
        """Remember what an operation writes."""
        for touched in self._around(container):
            touched.writes.append(indices)

    def _around(self, container: Container) -> Iterator[_Touched]:
        own = {loop.name for loop in container.loops}
        for loops, touched in self._maps:
            if not loops & own:  # else every iteration has a container of its own
                yield touched.setdefault(id(container), _Touched(container.name))

    def _check(self, touched: _Touched, loops: frozenset[str]) -> None:
        for write in touched.writes:
            reads = [read for read in touched.reads if not self._are_apart(read, write)]
            for other in (*reads, *touched.writes):
                if not self._are_apart(write, other) and _depend(write, other, loops):
                    found = f"iterations of the map depend on each other through {touched.name!r}"
                    raise UserError(f"{found} against independent ones")
            if reads and not any(loops & {*index} for index in write):
                found = f"all iterations of the map write and read the same elements of {touched.name!r}"
                raise UserError(f"{found} against their own")

    def _are_apart(self, one: tuple[Affine, ...], other: tuple[Affine, ...]) -> bool:
        """Return whether two accesses have no element in common, whatever the iterations: so along a dimension."""
        for index, its in zip(one, other, strict=True):
            (first, last), (its_first, its_last) = self._ends(index), self._ends(its)
            if last < its_first or its_last < first:
                return True
        return False

    def _ends(self, index: Affine) -> tuple[int, int]:
        steps = [factor * (self._extents[name] - 1) for name, factor in index.items() if name]
        offset = index.get("", 0)
        return offset + sum(min(step, 0) for step in steps), offset + sum(max(step, 0) for step in steps)


def _depend(write: tuple[Affine, ...], other: tuple[Affine, ...], loops: frozenset[str]) -> bool:
    """Return whether an iteration of some loops may touch what another one writes."""
    for index, its in zip(write, other, strict=True):
        moves = loops & ({*index} | {*its})
        if moves and _part(index, moves) != _part(its, moves):
            return True
    return False


def _part(index: Affine, loops: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """Return an index without the loops of other maps, which take all their values."""
    return tuple(sorted((name, factor) for name, factor in index.items() if name in loops or not name))

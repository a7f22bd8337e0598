"""Places: where the elements of what a program computes stand, as affine indices of the loops around.

Parts of them are what a memlet or a view sees. Iterations of a map that depend on each other are found here, since a
map is divided operation by operation.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import dace
import sympy
from msgspec import Struct, field

from dfcompile.errors import UserError
from dfcompile.frontend.affine import Affine, affine_text, span

Affines: TypeAlias = Mapping[str, Affine]  # by name of a symbol or a dimension


class Loop(Struct, frozen=True):
    """A parameter of a map, counted from 0.

    Attributes:
        name: unique in the program.
        extent: iterations.
        is_task: the user's own map, around more than one operation: its iterations are independent tasks.
    """

    name: str
    extent: int
    is_task: bool = False


class Place(Struct, frozen=True):
    """Where a value stands: element ``d0, d1 …`` of a container at ``indices`` of an array of level 0, or one element.

    Attributes:
        array: written once.
        indices: one per dimension of the array, of the loops around and, of a container, of ``d0``, ``d1`` …
    """

    array: str
    indices: tuple[Affine, ...]

    def substituted(self, values: Affines) -> "Place":
        """Return the place with values in the place of names of loops or dimensions."""
        return Place(self.array, substituted(self.indices, values))

    def at(self, indices: Sequence[Affine]) -> "Place":
        """Return the place at indices of the container."""
        return self.substituted(_dimensions(indices))


class Container(Struct):
    """An array of the program with the value that it has at this point: DaCe's arrays are written many times.

    Attributes:
        name: the user's, or DaCe's.
        shape: in elements.
        dtype: numpy name.
        loops: around its allocation; it exists once per iteration of these.
        value: ``None`` before it is written.
        is_written: whether the program has written to it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    loops: tuple[Loop, ...] = ()
    value: Place | None = None
    is_written: bool = False


class Window(Struct, frozen=True):
    """A container under one of its names: a view, or what a nested program sees of it.

    Attributes:
        container: that is seen.
        indices: one per dimension of the container, of loops and of the window's own dimensions ``d0``, ``d1`` …
        shape: of the window.
    """

    container: Container
    indices: tuple[Affine, ...]
    shape: tuple[int, ...]

    @staticmethod
    def whole(container: Container) -> "Window":
        """Return a container as it is."""
        return Window(container, own_dimensions(len(container.shape)), container.shape)

    def at(self, indices: Sequence[Affine]) -> tuple[Affine, ...]:
        """Return the indices of the container at indices of the window."""
        return substituted(self.indices, _dimensions(indices))

    def part(self, indices: Sequence[Affine], shape: tuple[int, ...]) -> "Window":
        """Return the window of a part; the indices are of its own dimensions."""
        return Window(self.container, self.at(indices), shape)


class Scope(Struct, frozen=True):
    """What names mean at a point of the program.

    Attributes:
        sdfg: the (nested) program.
        arrays: what each array is.
        symbols: value of each symbol.
        loops: of the maps around, outer to inner.
        outer: those of them that are around the whole (nested) program.
    """

    sdfg: dace.SDFG
    arrays: dict[str, Window] = field(default_factory=dict)
    symbols: dict[str, Affine] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    outer: tuple[Loop, ...] = ()

    def affine(self, expression: object) -> Affine | None:
        """Return an index as DaCe has it, of loops; ``None`` if it is not affine or names an unknown symbol.

        Args:
            expression: an integer or an expression of SymPy.
        """
        if isinstance(expression, int):
            return {"": expression} if expression else {}
        index: dict[str, int] = {}
        for term, factor in sympy.sympify(expression).expand().as_coefficients_dict().items():
            name = "" if term == 1 else str(term)
            if int(factor) != factor or (name and not (term.is_Symbol and name in self.symbols)):
                return None
            index[name] = int(factor)
        return _substituted(index, self.symbols)

    def text(self, symbol: str) -> str:
        """Return the value of a symbol as source."""
        return affine_text(self.symbols[symbol])

    def constant(self, expression: object) -> int | None:
        """Return an expression that is a constant, or ``None``."""
        found = self.affine(expression)
        return None if found is None or set(found) - {""} else found.get("", 0)

    def steps(self, bounds: tuple[object, object, object]) -> tuple[Affine, int, int] | None:
        """Return the first index of a range, its stride and how many there are; ``None`` if it depends on data.

        Args:
            bounds: first and last index, and the stride, as DaCe has them.
        """
        begin, end, step = bounds
        first, last, stride = self.affine(begin), self.affine(end), self.constant(step)
        if first is None or last is None or not stride:
            return None
        length = {name: last.get(name, 0) - first.get(name, 0) for name in (*last, *first)}
        if any(step for name, step in length.items() if name):  # it depends on a loop
            return None
        return first, stride, length.get("", 0) // stride + 1

    def part(self, window: Window, subset: "dace.subsets.Subset | None", *, keeps_ones: bool = False) -> Window:
        """Return the window of a memlet, without dimensions in which it is one element.

        Args:
            window: of which it is a part.
            subset: of the memlet; all if there is none.
            keeps_ones: a dimension in which the window has one element itself stays.

        Raises:
            UserError: the part depends on data.
        """
        indices, sizes = self._ranges(subset, window)
        kept = [axis for axis, size in enumerate(sizes) if size > 1 or (keeps_ones and window.shape[axis] == 1)]
        numbers = {axis: number for number, axis in enumerate(kept)}
        return _renumbered(window, indices, numbers, tuple(sizes[axis] for axis in kept))

    def seen(self, window: Window, subset: "dace.subsets.Subset | None", shape: tuple[int, ...], name: str) -> Window:
        """Return a window under another shape: that of the subset with other dimensions of extent 1.

        Raises:
            UserError: the shape has other dimensions, or the part depends on data.
        """
        indices, sizes = self._ranges(subset, window)
        wide = [axis for axis, size in enumerate(sizes) if size > 1]
        if [sizes[axis] for axis in wide] != [extent for extent in shape if extent > 1]:
            raise UserError(f"{name!r} sees {sizes} elements as {list(shape)} against the same dimensions")
        numbers = (number for number, extent in enumerate(shape) if extent > 1)
        return _renumbered(window, indices, dict(zip(wide, numbers, strict=True)), shape)

    def _ranges(self, subset: "dace.subsets.Subset | None", window: Window) -> tuple[list[Affine], list[int]]:
        """Return the index of each dimension of a window, of its own dimensions, and how many there are of it."""
        if subset is None:
            return [{f"d{axis}": 1} if size > 1 else {} for axis, size in enumerate(window.shape)], list(window.shape)
        indices, sizes = list[Affine](), list[int]()
        for axis, bounds in enumerate(subset.ndrange()):
            steps = self.steps(bounds)
            if steps is None or steps[2] < 1:
                raise UserError(f"part [{subset}] depends on data against a part of constant size")
            first, stride, size = steps
            sizes.append(size)
            indices.append({**first, f"d{axis}": stride} if size > 1 else first)
        return indices, sizes


def along(loops: Sequence[Loop]) -> tuple[Affine, ...]:
    """Return the indices of something that has a dimension for each of some loops."""
    return tuple({loop.name: 1} for loop in loops)


def own_dimensions(rank: int) -> tuple[Affine, ...]:
    """Return the index of each dimension of something that is read as it is."""
    return tuple({f"d{axis}": 1} for axis in range(rank))


def _dimensions(indices: Sequence[Affine]) -> dict[str, Affine]:
    """Return what to put in the place of own dimensions."""
    return {f"d{axis}": index for axis, index in enumerate(indices)}


def substituted(indices: Sequence[Affine], values: Affines) -> tuple[Affine, ...]:
    """Return indices with values in the place of names.

    >>> substituted([{"d0": 2, "": 1}], {"d0": {"n": 1, "": 3}})
    ({'n': 2, '': 7},)
    """
    return tuple(_substituted(index, values) for index in indices)


def _substituted(index: Affine, values: Affines) -> Affine:
    total: dict[str, int] = {}
    for name, factor in index.items():
        for inner, value in values.get(name, {name: 1}).items():
            total[inner] = total.get(inner, 0) + factor * value
    return {name: factor for name, factor in total.items() if factor}


def _renumbered(
    window: Window, indices: Sequence[Affine], numbers: Mapping[int, int], shape: tuple[int, ...]
) -> Window:
    """Return a part of a window whose dimensions are some of the window's, under new numbers."""
    names = {f"d{axis}": f"d{number}" for axis, number in numbers.items()}
    return window.part([{names.get(key, key): step for key, step in index.items()} for index in indices], shape)


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
            for write in each.writes:
                reads = [read for read in each.reads if not self._are_apart(read, write)]
                for other in (*reads, *each.writes):
                    if not self._are_apart(write, other) and _depend(write, other, names):
                        found = f"iterations of the map depend on each other through {each.name!r}"
                        raise UserError(f"{found} against independent ones")
                if reads and not any(names & {*index} for index in write):
                    found = f"all iterations of the map write and read the same elements of {each.name!r}"
                    raise UserError(f"{found} against their own")

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

    def _are_apart(self, one: tuple[Affine, ...], other: tuple[Affine, ...]) -> bool:
        """Return whether two accesses have no element in common, whatever the iterations: so along a dimension."""
        pairs = ((span(index, self._extents), span(its, self._extents)) for index, its in zip(one, other, strict=True))
        return any(last < its_first or its_last < first for (first, last), (its_first, its_last) in pairs)


def _depend(write: tuple[Affine, ...], other: tuple[Affine, ...], loops: frozenset[str]) -> bool:
    """Return whether an iteration of some loops may touch what another one writes."""
    pairs = ((index, its, loops & ({*index} | {*its})) for index, its in zip(write, other, strict=True))
    return any(moves and _part(index, moves) != _part(its, moves) for index, its, moves in pairs)


def _part(index: Affine, loops: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """Return an index without the loops of other maps, which take all their values."""
    return tuple(sorted((name, factor) for name, factor in index.items() if name in loops or not name))

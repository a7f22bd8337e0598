"""Loop orders of convolutions: what each class of them moves, for all tiles of the windows at once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np
from msgspec import Struct

from dfcompile.io_bounds.curve import Halo, Int64, trips_of
from dfcompile.io_bounds.einsum.window import STAYS, AxisTables, Role, Roles, WindowAxis

Kept = Literal["W", "O", "I"]  # the tensor whose tile stays over the innermost loop
Loop = tuple[int, int]  # axis, and 0 of its outputs, 1 of its taps
FILTERS: Loop = (-1, 0)  # the loop over filters: it does not index the input
_AT_ONCE = 2**14  # points, times tiles of filters: what the sets of loops save takes some megabytes


class WindowGrid:
    """Every combination of the pairs of tiles of all axes, numbered; the last axis varies fastest.

    Attributes:
        tables: of the axes.
        axes: the axes.
        points: number of combinations.
        places: number of the pair of each axis, shape [points, axes].
        tiles: of the outputs of all axes, then of the taps, shape [points, 2 * axes].
        footprint: words of the box in the input, of one channel of one image, shape [points].
        outputs: words of a tile of one channel of the result, shape [points].
        taps: words of a tile of one filter of one channel, shape [points].
    """

    def __init__(self, tables: tuple[AxisTables, ...], axes: tuple[WindowAxis, ...]) -> None:
        self.tables, self.axes = tables, axes
        pairs = tuple(len(table.footprint) for table in tables)
        self.points = prod(pairs)
        self.places = np.stack(np.unravel_index(np.arange(self.points), pairs), axis=1).astype(np.int64)
        outputs = [self.spread(axis, table.outputs) for axis, table in enumerate(tables)]
        taps = [self.spread(axis, table.taps) for axis, table in enumerate(tables)]
        footprint = [self.spread(axis, table.footprint) for axis, table in enumerate(tables)]
        self.tiles: Int64 = np.stack([*outputs, *taps], axis=1)
        self.footprint, self.outputs, self.taps = (
            np.asarray(np.prod(columns, axis=0)) for columns in (footprint, outputs, taps)
        )

    def spread(self, axis: int, column: Int64) -> Int64:
        """Return a column of an axis' pairs, shape [pairs], as one of all combinations, shape [points]."""
        return np.asarray(column[self.places[:, axis]])

    def extent(self, loop: Loop) -> int:
        """Return the iterations of a loop over single outputs, or taps."""
        axis, part = loop
        return self.axes[axis].taps if part else self.axes[axis].outputs

    def trips(self, loop: Loop) -> Int64:
        """Return the trips of a loop over tiles, shape [points]."""
        axis, part = loop
        return trips_of(self.extent(loop), self.tiles[:, axis + part * len(self.axes)])

    def shared(self, roles: Sequence[Roles]) -> Int64:
        """Return the words shared under the roles of each axis, shape [points]."""
        columns = (self.spread(axis, table.shared[roles[axis]]) for axis, table in enumerate(self.tables))
        return prod(columns, start=np.ones(self.points, dtype=np.int64))


class OrderClass(Struct, frozen=True, eq=False):
    """Loop orders that keep the same tensor for the same innermost loops.

    Attributes:
        keeps: the tensor whose tile stays over the innermost loops.
        is_whole: whether it stays over all loops that do not index it.
        weight_trips: times that the weights move, without those of the batch, shape [points].
        result_trips: times that the result moves, without those of the channels, shape [points].
        input_words: that the best of the orders moves of one channel of one image, by the trips of the filters,
            shape [tiles of filters, points].
    """

    keeps: Kept
    is_whole: bool
    weight_trips: Int64
    result_trips: Int64
    input_words: Int64


def order_classes(grid: WindowGrid, filter_trips: Int64, halo: Halo) -> tuple[OrderClass, ...]:
    """Return the classes of orders, each with the least words of the input that its orders move."""
    found = _true_words(grid, filter_trips) if halo is Halo.TRUE else _steady_words(grid, filter_trips)
    loops = [(axis, part) for axis in range(len(grid.axes)) for part in (0, 1)]
    whole = np.prod([grid.trips(loop) for loop in loops if loop[1] == 0], axis=0)
    taps = np.prod([grid.trips(loop) for loop in loops if loop[1] == 1], axis=0)
    classes = []
    for (keeps, run, is_whole), words in found.items():
        held: Int64 = prod(map(grid.trips, sorted(run)), start=np.ones(grid.points, dtype=np.int64))
        weight_trips = whole // held if keeps == "W" else whole
        result_trips = taps // held if keeps == "O" else taps
        classes.append(OrderClass(keeps, is_whole, weight_trips, result_trips, words))
    return tuple(classes)


Run = tuple[Kept, frozenset[Loop], bool]  # what is kept, over which innermost loops, and whether over all that it can


def _true_words(grid: WindowGrid, filter_trips: Int64) -> dict[Run, Int64]:
    """Return the least words of the input over all orders of each class, shape [tiles of filters, points].

    Each advance of a loop saves what the boxes before and after share: a product over axes, that depends on which
    loops are inside the one that advances. Channels and images share nothing; once their loops are inside, nothing
    is saved. They come after the others, or end the run of loops that keep a tile.
    """
    at_once = max(1, _AT_ONCE // len(filter_trips))
    parts = [
        _OrdersOfPoints(grid, np.arange(start, min(start + at_once, grid.points)), filter_trips[:, None]).words()
        for start in range(0, grid.points, at_once)
    ]
    return {run: np.concatenate([part[run] for part in parts], axis=1) for run in parts[0]}


class _OrdersOfPoints:
    """Orders of the loops that move a window, and of that over filters, for some points of a grid.

    What an order saves is a sum over its loops, of which each depends on which loops are inside it, not on their
    order: so the best order is a longest path over sets of loops.
    """

    def __init__(self, grid: WindowGrid, points: Int64, filter_trips: Int64) -> None:
        self._grid, self._points, self._trips = grid, points, filter_trips
        moving = [loop for axis in range(len(grid.axes)) for loop in ((axis, 0), (axis, 1)) if grid.extent(loop) > 1]
        self._parts = tuple(frozenset(loop for loop in moving if loop[1] == part) for part in (0, 1))
        self._every = frozenset((FILTERS, *moving))
        self._columns = {
            (axis, roles): column[grid.places[points, axis]]
            for axis, table in enumerate(grid.tables)
            for roles, column in table.shared.items()
        }

    def words(self) -> dict[Run, Int64]:
        """Return the least words of each class of orders, shape [tiles of filters, points]."""
        boxes = self._trips * self._product([STAYS] * len(self._grid.axes))
        innermost = {inside: saved for part in self._parts for inside, saved in self._innermost(part).items()}
        outputs, taps = self._parts
        found: dict[Run, Int64] = {
            ("W", outputs, True): boxes - innermost[outputs],
            ("O", taps, True): boxes - innermost[taps],
        }
        outside = {self._every: np.zeros_like(boxes)}  # what the loops outside a set save at best
        for size in range(len(self._every) - 1, 0, -1):
            for inside in (each for each in innermost if len(each) == size):
                part = outputs if inside <= outputs else taps
                keeps: Kept = "W" if inside <= outputs else "O"
                best = self._outside(inside, outside, self._every - part)  # the loop that ends the run comes next
                found[keeps, inside, False] = boxes - innermost[inside] - best
            sets = map(frozenset, combinations(sorted(self._every), size))
            outside = {inside: self._outside(inside, outside, self._every - inside) for inside in sets}
        found["I", frozenset(), True] = boxes - self._outside(frozenset(), outside, frozenset([FILTERS]))
        return found

    def _innermost(self, part: frozenset[Loop]) -> dict[frozenset[Loop], Int64]:
        """Return what each set of loops of outputs, or of taps, saves at best if nothing else is inside."""
        found = {frozenset[Loop](): np.zeros((len(self._trips), len(self._points)), dtype=np.int64)}
        for size in range(1, len(part) + 1):
            for inside in map(frozenset, combinations(sorted(part), size)):
                ways = [found[inside - {loop}] + self._saved(inside - {loop}, loop) for loop in sorted(inside)]
                found[inside] = np.max(ways, axis=0)
        return found

    def _outside(
        self, inside: frozenset[Loop], outside: Mapping[frozenset[Loop], Int64], following: frozenset[Loop]
    ) -> Int64:
        """Return what is saved at best if one of some loops follows those that are inside, and then all others."""
        return reduce(np.maximum, (self._saved(inside, loop) + outside[inside | {loop}] for loop in sorted(following)))

    def _saved(self, inside: frozenset[Loop], loop: Loop) -> Int64:
        """Return the words that the advances of a loop save, with some loops inside it."""

        def role(other: Loop) -> Role:
            return Role.STEP if other == loop else Role.INNER if other in inside else Role.OUTER

        saved = self._product([(role((axis, 0)), role((axis, 1))) for axis in range(len(self._grid.axes))])
        if loop == FILTERS:
            return (self._trips - 1) * saved
        return saved[None] if FILTERS in inside else self._trips * saved

    def _product(self, roles: Sequence[Roles]) -> Int64:
        """Return `WindowGrid.shared` of the points."""
        columns = (self._columns[each] for each in enumerate(roles))
        return prod(columns, start=np.ones(len(self._points), dtype=np.int64))


# What the innermost loop may be where the tool's rule forgets: 0 of outputs or 1 of taps, what it keeps, the step that
# is remembered, roles of the loops of its axis as it advances, and as the other one does and moves the window as far.
_INNERMOST: tuple[tuple[int, Kept, Role, Roles, Roles], ...] = (
    (0, "W", Role.STEP, (Role.STEP, Role.OUTER), (Role.INNER, Role.STEP)),
    (1, "O", Role.INNER, (Role.OUTER, Role.STEP), (Role.STEP, Role.INNER)),
)


def _steady_words(grid: WindowGrid, filter_trips: Int64) -> dict[Run, Int64]:
    """Return the least words of the input of each class of orders, shape [tiles of filters, points]."""
    found: dict[Run, Int64] = {}
    for run, words in _steady_orders(grid, filter_trips[:, None]):
        found[run] = np.minimum(found[run], words) if run in found else words
    return found


def _steady_orders(grid: WindowGrid, filter_trips: Int64) -> Iterator[tuple[Run, Int64]]:
    """Yield the orders that may be best where the tool's rule forgets: by the innermost loop, and what meets its step.

    After each advance of the innermost loop the tool remembers its step, so that any other loop's advance saves
    something only if it moves the window by the same vector. Vectors of two axes differ; the loop over filters has
    the vector 0: with one trip it is no such loop.
    """
    axes = range(len(grid.axes))
    boxes = grid.shared([STAYS] * len(grid.axes))
    for axis in axes:
        for part, keeps, innermost, advancing, other in _INNERMOST:
            saved = _steady(grid, axis, innermost, advancing)
            yield (keeps, frozenset((each, part) for each in axes), True), filter_trips * (boxes - saved)
            met = _steady(grid, axis, innermost, other)
            if met.any():
                yield (keeps, frozenset({(axis, part)}), False), filter_trips * (boxes - saved - met)
    still: Run = ("I", frozenset(), True)
    yield still, np.broadcast_to(boxes, (len(filter_trips), grid.points))
    for axis in axes:
        for _, _, _, _, roles in reversed(_INNERMOST):
            met = _steady(grid, axis, Role.OUTER, roles)
            if met.any():
                yield still, np.where(filter_trips > 1, boxes - met, np.iinfo(np.int64).max)


def _steady(grid: WindowGrid, axis: int, remembered: Role, roles: Roles) -> Int64:
    """Return what the advances under some roles of an axis' loops save; other axes stay outside."""
    others = (grid.spread(other, table.shared[STAYS]) for other, table in enumerate(grid.tables) if other != axis)
    return prod(others, start=grid.spread(axis, grid.tables[axis].steady[remembered, roles]))

"""Windows that slide along an axis: how long their boxes are together, and what successive boxes share."""

from enum import IntEnum, unique
from functools import cache
from math import gcd
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.distinct import distinct
from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import Int64, Tiles, tile_sizes, trips_of

MOST_PAIRS = 20_000  # of tiles of an axis: some seconds


class WindowAxis(Struct, frozen=True):
    """An axis of a convolution's input: output ``p`` and tap ``r`` read ``p * stride + r * dilation - padding``.

    Attributes:
        outputs: positions of the window.
        taps: of the filter.
        stride: between positions.
        dilation: between taps.
        padding: before the first word.
        size: words of the axis that exist; 0: as many as the windows touch.
    """

    outputs: int
    taps: int
    stride: int = 1
    dilation: int = 1
    padding: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"window of {self.taps} at {self.outputs} places"

    @property
    def span(self) -> int:
        """Words from the first that a window touches to the last, padding included."""
        return (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def _taken(self) -> Int64:
        """Position in the axis of each output and tap, -1 for padding, shape [outputs, taps]."""
        outputs = np.arange(self.outputs, dtype=np.int64) * self.stride - self.padding
        found = np.add.outer(outputs, np.arange(self.taps, dtype=np.int64) * self.dilation)
        size = self.size or self.span - self.padding
        return np.where((found >= 0) & (found < size), found, -1)

    @property
    def products(self) -> int:
        """Pairs of an output and a tap that read a word which exists."""
        return int((self._taken >= 0).sum())

    @property
    def touched(self) -> int:
        """Words that are read by any pair."""
        return len(distinct(self._taken[self._taken >= 0]))

    @property
    def live_taps(self) -> int:
        """Taps that meet a word anywhere."""
        return int((self._taken >= 0).any(axis=0).sum())

    @property
    def least_live_taps(self) -> int:
        """Taps that meet a word, at the output where they are fewest."""
        return int((self._taken >= 0).sum(axis=1).min())

    @property
    def reuse(self) -> int:
        """Pairs of an output and a tap that read the same word, at most."""
        common = gcd(self.stride, self.dilation)
        return min(-(-self.taps // (self.stride // common)), -(-self.outputs // (self.dilation // common)))

    @property
    def unpadded(self) -> "WindowAxis":
        """The axis with its padding as words that are read like others."""
        return WindowAxis(self.outputs, self.taps, self.stride, self.dilation)


@unique
class Role(IntEnum):
    """Where a loop stands beside the one that advances: it stays, goes back to its first tile, or is that one."""

    OUTER = 0
    INNER = 1
    STEP = 2


Roles = tuple[Role, Role]  # of the loop over tiles of outputs, and over tiles of taps

STAYS = (Role.OUTER, Role.OUTER)
TRUE_ROLES: tuple[Roles, ...] = (
    *((outputs, taps) for outputs in (Role.OUTER, Role.INNER) for taps in (Role.OUTER, Role.INNER)),
    *((Role.STEP, Role.OUTER), (Role.STEP, Role.INNER), (Role.OUTER, Role.STEP), (Role.INNER, Role.STEP)),
)


class AxisTables(Struct, frozen=True, eq=False):
    """Sums over an axis for pairs of tiles: of outputs, and of taps.

    Attributes:
        outputs: tile sizes, shape [pairs].
        taps: tile sizes, shape [pairs].
        footprint: longest box in words, shape [pairs].
        shared: words that the box shares with the one before, added up over all advances of the loop with the role
            ``STEP`` and all iterations of those with ``OUTER``; without a ``STEP`` over one advance of a loop of
            another axis, shape [pairs]. That of `STAYS` is the sum of all boxes.
        steady: what the rule of the tool counts as shared, by the step and by the roles; see `_Boxes.steady`.
    """

    outputs: Int64
    taps: Int64
    footprint: Int64
    shared: dict[Roles, Int64]
    steady: dict[tuple[Role, Roles], Int64]

    def of(self, pairs: Int64) -> "AxisTables":
        """Return the sums of some pairs alone."""
        shared = {roles: column[pairs] for roles, column in self.shared.items()}
        steady = {key: column[pairs] for key, column in self.steady.items()}
        return AxisTables(self.outputs[pairs], self.taps[pairs], self.footprint[pairs], shared, steady)


# Roles under which the tool may find words again: (the step that it remembers, roles). A step of outputs is
# ``STEP, OUTER``; the other advances are those that move the window by the same vector by coincidence.
STEADY: tuple[tuple[Role, Roles], ...] = (
    (Role.STEP, (Role.STEP, Role.OUTER)),  # outputs advance after outputs
    (Role.STEP, (Role.INNER, Role.STEP)),  # taps advance after outputs
    (Role.INNER, (Role.OUTER, Role.STEP)),  # taps advance after taps
    (Role.INNER, (Role.STEP, Role.INNER)),  # outputs advance after taps
    (Role.OUTER, (Role.STEP, Role.INNER)),  # the window stands still: outputs advance as taps go back
    (Role.OUTER, (Role.INNER, Role.STEP)),  # taps advance as outputs go back
)


@cache
def axis_tables(axis: WindowAxis, tiles: Tiles) -> AxisTables:
    """Return the sums for the pairs of tiles of an axis that matter.

    Raises:
        UserError: there are too many.
    """
    match tiles:
        case Tiles.DIVISORS:
            return tables_of(axis, tile_sizes(axis.outputs, tiles), tile_sizes(axis.taps, tiles), are_whole=True)
        case Tiles.INTEGER:
            sizes = _useful_sizes(axis)
            pairs = len(sizes[0]) * len(sizes[1])
            if pairs > MOST_PAIRS:
                raise UserError(f"{axis}: {pairs:,} pairs of tiles against {MOST_PAIRS:,} at most (--tiles divisors)")
            found = tables_of(axis, *sizes)
            return found.of(_undominated(axis, found))
    assert_never(tiles)


def tables_of(axis: WindowAxis, outputs: Int64, taps: Int64, *, are_whole: bool = False) -> AxisTables:
    """Return the sums for all pairs of some tile sizes.

    Args:
        axis: of the window.
        outputs: tile sizes.
        taps: tile sizes.
        are_whole: whether all tiles divide, so that the tool's rule is taken as it is.
    """
    pairs = [(int(p), int(r)) for p in outputs for r in taps]
    shared = {roles: np.zeros(len(pairs), dtype=np.int64) for roles in TRUE_ROLES}
    steady = {key: np.zeros(len(pairs), dtype=np.int64) for key in STEADY}
    footprint = np.zeros(len(pairs), dtype=np.int64)
    for place, pair in enumerate(pairs):
        boxes = _Boxes(axis, *pair)
        footprint[place] = (boxes.ends - boxes.starts).max()
        for roles, column in shared.items():
            column[place] = boxes.shared(roles)
        for (remembered, roles), column in steady.items():
            column[place] = boxes.steady(remembered, roles, are_whole=are_whole)
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return AxisTables(columns[:, 0], columns[:, 1], footprint, shared, steady)


def _useful_sizes(axis: WindowAxis) -> tuple[Int64, Int64]:
    """Return the tile sizes that may be best, of outputs and of taps.

    Of tiles with equal trip counts the smallest is best but where a box is about as short as the window, or the
    padding: words that strides and dilations skip, and padding, then count for few of its tiles, or for the last alone.
    """
    if axis.taps == 1 and axis.padding == 0 and axis.size in (0, axis.span):
        return tile_sizes(axis.outputs, Tiles.INTEGER), np.ones(1, dtype=np.int64)
    size = axis.size or axis.span - axis.padding
    beyond = max(axis.padding, axis.span - axis.padding - size, 0)
    if beyond and (axis.taps <= beyond or axis.stride > 1 or axis.dilation > 1):  # it may end between words of interest
        return np.arange(1, axis.outputs + 1, dtype=np.int64), np.arange(1, axis.taps + 1, dtype=np.int64)
    outputs = _sizes_with(axis.outputs, 2 * axis.taps * axis.dilation, beyond, axis.stride)
    taps = _sizes_with(axis.taps, 2 * axis.outputs * axis.stride, beyond, axis.dilation)
    return outputs, taps


def _sizes_with(extent: int, window: int, beyond: int, step: int) -> Int64:
    """Return the smallest tile of each trip count, those about as short as a window, and those with a short end."""
    small = 2 * (window + beyond) // step + 2
    last = np.arange(1, extent + 1)
    tails = extent - (-(-extent // last) - 1) * last
    kept = np.isin(last, tile_sizes(extent, Tiles.INTEGER)) | (last <= small) | (tails <= small)
    return last[kept].astype(np.int64)


def _undominated(axis: WindowAxis, found: AxisTables) -> Int64:
    """Return the pairs of tiles that no other is as good as in everything; of equal ones the first."""
    gains = [-column for roles, column in found.shared.items() if roles != STAYS]
    gains += [-column for column in found.steady.values()]
    trips = trips_of(axis.outputs, found.outputs), trips_of(axis.taps, found.taps)
    costs = np.stack([found.outputs, found.taps, *trips, found.footprint, found.shared[STAYS], *gains], axis=1)
    kept: list[int] = []
    for pair in np.lexsort(costs.T[::-1]).tolist():
        if not kept or not (costs[kept] <= costs[pair]).all(axis=1).any():
            kept.append(pair)
    return np.array(sorted(kept), dtype=np.int64)


# What of the tiles of a loop is met by its role, as a loop advances and in the iteration before.
_NOW = (slice(None), slice(0, 1), slice(1, None))
_BEFORE = (slice(None), slice(-1, None), slice(0, -1))


class _Boxes:
    """The boxes of one pair of tiles; starts and ends have shape [tiles of outputs, tiles of taps]."""

    def __init__(self, axis: WindowAxis, outputs: int, taps: int) -> None:
        self.axis, self.outputs, self.taps = axis, outputs, taps
        first, first_tap = np.arange(0, axis.outputs, outputs), np.arange(0, axis.taps, taps)
        last = np.minimum(first + outputs, axis.outputs) - 1
        last_tap = np.minimum(first_tap + taps, axis.taps) - 1
        starts = np.add.outer(first * axis.stride, first_tap * axis.dilation) - axis.padding
        ends = np.add.outer(last * axis.stride, last_tap * axis.dilation) - axis.padding + 1
        size = axis.size or axis.span - axis.padding
        self.starts = np.clip(starts, 0, size)
        self.ends = np.maximum(self.starts, np.clip(ends, 0, size))

    def shared(self, roles: Roles) -> int:
        """Return the words that boxes share with the ones before, under the roles of the two loops."""
        now, before = (tuple(part[role] for role in roles) for part in (_NOW, _BEFORE))
        starts = np.maximum(self.starts[now], self.starts[before])
        return int(np.maximum(np.minimum(self.ends[now], self.ends[before]) - starts, 0).sum())

    def steady(self, remembered: Role, roles: Roles, *, are_whole: bool) -> int:
        """Return what the tool counts as found again: parts of boxes that a whole tile one step back covers.

        The tool remembers by which vector the window moved last. It takes every loop to go back by one step where it
        begins anew, so that an advance after others moves by its own step less theirs; unless that is the remembered
        vector, nothing is found again. Tiles that do not divide, which the tool does not have, find no more than is
        there.
        """
        axis, step, tap_step = self.axis, self.outputs * self.axis.stride, self.taps * self.axis.dilation
        repeats, tap_repeats = self.outputs < axis.outputs, self.taps < axis.taps
        by, is_met = {
            Role.STEP: (step, roles == (Role.STEP, Role.OUTER) or (repeats and tap_step == 2 * step)),
            Role.INNER: (tap_step, roles == (Role.OUTER, Role.STEP) or (tap_repeats and step == 2 * tap_step)),
            Role.OUTER: (0, step == tap_step and repeats and tap_repeats),
        }[remembered]
        if not is_met:
            return 0
        whole = (self.outputs - 1) * axis.stride + (self.taps - 1) * axis.dilation + 1
        now, before = (tuple(part[role] for role in roles) for part in (_NOW, _BEFORE))
        starts, ends = self.starts[now], np.minimum(self.ends[now], self.starts[now] + whole - by)
        if not are_whole:
            starts, ends = np.maximum(starts, self.starts[before]), np.minimum(ends, self.ends[before])
        return int(np.maximum(ends - starts, 0).sum())

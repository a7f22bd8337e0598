"""Convolutions of any spatial rank: the curve of windows that slide, exact over tiles and loop orders."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import (
    Curve,
    Halo,
    Int64,
    Rules,
    Tiles,
    check_words,
    constant,
    front,
    front_numbers,
    least,
    tile_sizes,
    trips_of,
)
from dfcompile.io_bounds.einsum.plain import MOST_TILINGS, PlainEinsum, gemm
from dfcompile.io_bounds.einsum.window import WindowAxis, axis_tables
from dfcompile.io_bounds.einsum.window_orders import Kept, OrderClass, WindowGrid, order_classes
from dfcompile.io_bounds.proved import Contracted

EVERY: frozenset[Kept] = frozenset({"W", "I", "O"})
_AT_ONCE = 2**18  # tilings: what is computed of them fits a cache
_WORDS: Mapping[Kept, int] = {"I": 1, "W": 1, "O": 1}


class Convolution(Struct, frozen=True):
    """A convolution; groups have inputs, weights and results of their own.

    ``I[g, n, c, p * stride + r * dilation, ...] W[g, c, k, r, ...] -> O[g, n, k, p, ...]``.

    Attributes:
        batch: images.
        groups: of channels.
        channels: of the input, per group.
        filters: channels of the result, per group.
        axes: spatial ones, at least one.
    """

    batch: int
    groups: int
    channels: int
    filters: int
    axes: tuple[WindowAxis, ...]

    @property
    def name(self) -> str:
        """For messages."""
        window = "x".join(str(axis.taps) for axis in self.axes)
        image = "x".join(str(axis.outputs) for axis in self.axes)
        return f"conv {window} to {self.groups}x{self.filters}x{image}"

    @property
    def ranks(self) -> tuple[str, ...]:
        """Names of the loops, in the order of a tiling; the groups are run one after the other."""
        numbers = range(len(self.axes)) if len(self.axes) > 1 else ("",)
        return ("N", "C", "K", *(f"P{number}" for number in numbers), *(f"R{number}" for number in numbers))

    @property
    def product(self) -> tuple[int, PlainEinsum] | None:
        """Equal products of matrices that it is, if its windows are single words; positions of all images are rows."""
        if any(axis.taps > 1 or axis.padding for axis in self.axes):
            return None
        rows = self.batch * prod(axis.outputs for axis in self.axes)  # only the words that are read count
        return self.groups, gemm(rows, self.channels, self.filters)

    @property
    def macs(self) -> int:
        """Multiplications, each with an addition; those with padding are counted."""
        windows = prod(axis.outputs * axis.taps for axis in self.axes)
        return self.groups * self.batch * self.channels * self.filters * windows

    @property
    def weight_words(self) -> int:
        """Words of the weights."""
        return self.groups * self.channels * self.filters * prod(axis.taps for axis in self.axes)

    @property
    def result_words(self) -> int:
        """Words of the result."""
        return self.groups * self.batch * self.filters * prod(axis.outputs for axis in self.axes)

    @property
    def depth(self) -> int:
        """Products of a word of the result that has fewest: at the border, where windows reach over padding."""
        return self.channels * prod(axis.least_live_taps for axis in self.axes)

    @property
    def contracted(self) -> Contracted:
        """What a proof needs; products with padding need not be done."""
        products, touched, taps = (
            prod(each) for each in zip(*((a.products, a.touched, a.live_taps) for a in self.axes), strict=True)
        )
        words = self.batch * self.channels * touched + self.channels * self.filters * taps
        return Contracted(
            macs=self.groups * self.batch * self.channels * self.filters * products,
            reuse=prod(axis.reuse for axis in self.axes),
            compulsory_words=self.groups * words + self.result_words,
            result_words=self.result_words,
        )

    @property
    def touched_words(self) -> int:
        """Different words of the input that are read, padding left out."""
        return self.groups * self.batch * self.channels * prod(axis.touched for axis in self.axes)

    def unpadded(self) -> "Convolution":
        """Return the convolution with its padding as words that are read like others."""
        axes = tuple(axis.unpadded for axis in self.axes)
        return Convolution(self.batch, self.groups, self.channels, self.filters, axes)


def convolution_curve(
    shape: Convolution, rules: Rules, moved: frozenset[Kept] = EVERY, units: Mapping[Kept, int] = _WORDS
) -> Curve:
    """Return the curve of a convolution: one box of each tensor in the buffer, any order of the loops over tiles.

    Args:
        shape: the convolution.
        rules: how traffic is counted.
        moved: tensors that move, at least one; others are held whole beside the buffer.
        units: that a word of each tensor takes, of the buffer and of the traffic.

    Raises:
        UserError: the convolution is too large.
    """
    if moved == {"W"}:  # a word at a time, all that it is multiplied with inside
        return constant(units["W"] * shape.weight_words, units["W"])
    if moved == {"O"}:
        return constant(units["O"] * rules.result_words(shape.result_words, shape.result_words), units["O"])
    found = _Tilings(shape, rules, {kept: units[kept] if kept in moved else 0 for kept in ("I", "W", "O")})
    return least([curve for kind in found.classes for curve in found.curves(kind)]).times(shape.groups)


class _Tilings:
    """All tilings of one group.

    Attributes:
        shape: the convolution.
        rules: how traffic is counted.
        units: that a word of each tensor takes; 0 of those that do not move.
        batch: tile sizes, as are ``channels`` and ``filters``.
        grid: pairs of tiles of all axes.
        classes: of loop orders.
    """

    def __init__(self, shape: Convolution, rules: Rules, units: Mapping[Kept, int]) -> None:
        if rules.halo is Halo.FORGET:
            shape = shape.unpadded()
        # It may move more than its work: boxes hold words that strides and dilations skip.
        slack = prod(-(-axis.span // axis.outputs) for axis in shape.axes)
        check_words(shape.name, 2 * max(3, sum(units.values())) * shape.macs * slack)
        self.shape, self.rules, self.units = shape, rules, units
        self.batch, self.channels, self.filters = (
            tile_sizes(extent, rules.tiles) for extent in (shape.batch, shape.channels, shape.filters)
        )
        self.grid = _grid(shape.axes, rules.tiles)
        count = len(self.batch) * len(self.channels) * len(self.filters) * self.grid.points
        if count > MOST_TILINGS:
            raise UserError(f"{shape.name}: {count:,} tilings against {MOST_TILINGS:,} at most (--tiles divisors)")
        self.classes = _classes(shape.axes, shape.filters, rules.tiles, rules.halo)

    def curves(self, kind: OrderClass) -> Iterator[Curve]:
        """Yield curves whose least is that of a class of orders."""
        places = np.arange(self.grid.points)
        whole = [other for other in self.classes if other.is_whole and other.keeps == kind.keeps]
        if whole and not kind.is_whole:  # where it may be better than the class that keeps its tile throughout
            places = np.flatnonzero((kind.input_words < whole[0].input_words).any(axis=0))
        if not len(places):
            return
        for sizes, traffic, tiles in self.columns(kind, places, reduces=True):
            kept = front_numbers(sizes, traffic)
            where = np.unravel_index(kept, (*map(len, tiles), len(places)))
            channels, filters, batch = (sizes[place] for sizes, place in zip(tiles, where[:3], strict=True))
            tilings = np.column_stack((batch, channels, filters, self.grid.tiles[places[where[3]]])).astype(np.int64)
            yield front(sizes[kept], traffic[kept], tilings)

    def columns(
        self, kind: OrderClass, places: Int64 | None = None, *, reduces: bool
    ) -> Iterator[tuple[Int64, Int64, tuple[Int64, Int64, Int64]]]:
        """Yield sizes and traffic for some tiles of the channels at once; these, those of filters and of the batch."""
        shape, grid = self.shape, self.grid
        places = np.arange(grid.points) if places is None else places
        over_batch, over_channels = (kind.is_whole and kind.keeps == each for each in ("W", "O"))
        one = np.ones(1, dtype=np.int64)
        batch = one if reduces and over_batch else self.batch
        filters = one if reduces and kind.keeps == "I" else self.filters
        channels = one if reduces and over_channels else self.channels
        number_of = {int(tile): number for number, tile in enumerate(self.filters)}
        rows = np.array([number_of[int(tile)] for tile in filters])
        input_words = kind.input_words[np.ix_(rows, places)][:, None, :] * (shape.batch * shape.channels)
        k, n = filters[:, None, None], batch[None, :, None]
        taps, outputs, box = grid.taps[places], grid.outputs[places], grid.footprint[places]
        weight_words, result_words = shape.weight_words // shape.groups, shape.result_words // shape.groups
        units = self.units
        weight_trips = kind.weight_trips[places] * (1 if over_batch else trips_of(shape.batch, n))
        fixed = units["W"] * weight_words * weight_trips + units["I"] * input_words
        at_once = max(1, _AT_ONCE // (len(filters) * len(batch) * len(places)))
        for start in range(0, len(channels), at_once):
            some = channels[start : start + at_once]
            c = some[:, None, None, None]
            channel_trips = np.ones_like(c) if over_channels else trips_of(shape.channels, c)
            moved = result_words * channel_trips * kind.result_trips[places]
            traffic = fixed + units["O"] * self.rules.result_words(moved, result_words)
            sizes = units["W"] * c * k * taps + units["I"] * n * c * box + units["O"] * n * k * outputs
            counts = (len(some), len(filters), len(batch), len(places))
            flat = (np.broadcast_to(column, counts).ravel() for column in (sizes, traffic))
            yield next(flat), next(flat), (some, filters, batch)


@lru_cache(maxsize=4)  # of large ones: their tables take tens of megabytes
def _grid(axes: tuple[WindowAxis, ...], tiles: Tiles) -> WindowGrid:
    return WindowGrid(tuple(axis_tables(axis, tiles) for axis in axes), axes)


@lru_cache(maxsize=4)
def _classes(axes: tuple[WindowAxis, ...], filters: int, tiles: Tiles, halo: Halo) -> tuple[OrderClass, ...]:
    return order_classes(_grid(axes, tiles), trips_of(filters, tile_sizes(filters, tiles)), halo)


class Pooling(Struct, frozen=True):
    """A figure of each window of each channel: the largest word, the mean.

    Attributes:
        windows: a group per channel, with one channel and one filter; its weights are none.
    """

    windows: Convolution

"""Einsums whose operands are indexed by single ranks: products of matrices, batched, grouped, contracted.

Attention in one pass, as in FlashAttention, is two of them: scores and softmax stay in the buffer.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import (
    Curve,
    Int64,
    Rules,
    check_words,
    front,
    front_numbers,
    least,
    tile_sizes,
    trips_of,
)
from dfcompile.io_bounds.proved import Contracted

MOST_TILINGS = 30_000_000  # of one loop order; some seconds


class PlainTensor(Struct, frozen=True):
    """An operand or the result of an einsum.

    Attributes:
        name: such as ``A``.
        ranks: numbers of those that index it.
        is_result: whether it is written, and partial sums of it are read again.
        units: that a word takes, of the buffer and of the traffic.
    """

    name: str
    ranks: tuple[int, ...]
    is_result: bool = False
    units: int = 1


class PlainEinsum(Struct, frozen=True):
    """A sum of products of tensors, each indexed by some of the ranks.

    Attributes:
        name: for messages.
        ranks: names.
        extents: of the ranks.
        tensors: operands and the result.
    """

    name: str
    ranks: tuple[str, ...]
    extents: tuple[int, ...]
    tensors: tuple[PlainTensor, ...]

    @property
    def macs(self) -> int:
        """Multiplications, each with an addition."""
        return prod(self.extents)

    @property
    def result_words(self) -> int:
        """Words of all results."""
        return sum(self.words(tensor) for tensor in self.tensors if tensor.is_result)

    def words(self, tensor: PlainTensor) -> int:
        """Words of a whole tensor."""
        return prod(self.extents[rank] for rank in tensor.ranks)

    @property
    def compulsory_words(self) -> int:
        """Words that move however large the buffer is: each once."""
        return sum(map(self.words, self.tensors))

    @property
    def depth(self) -> int:
        """Products of each word of the result."""
        indexed = {rank for tensor in self.tensors if tensor.is_result for rank in tensor.ranks}
        return prod(extent for rank, extent in enumerate(self.extents) if rank not in indexed)

    @property
    def contracted(self) -> Contracted:
        """What a proof needs, of a sum of products of two operands."""
        return Contracted(self.macs, 1, self.compulsory_words, self.result_words)


class _Order(Struct, frozen=True):
    """A class of loop orders, by what it saves: of each tensor the ranks that run while its tile stays."""

    innermost: tuple[int, ...]
    stays: tuple[frozenset[int], ...]


def plain_curve(einsum: PlainEinsum, rules: Rules) -> Curve:
    """Return the curve of an einsum: one tile of each tensor in the buffer, any order of the loops over tiles.

    Of a tensor only the innermost loops that do not index it matter: while they run its tile stays. The tile of a
    rank whose trip count then stands nowhere is 1 [huang24; docs/bounds.md].

    Raises:
        UserError: the einsum is too large.
    """
    check_words(einsum.name, 2 * sum(tensor.units for tensor in einsum.tensors) * einsum.macs)
    return least([_order_curve(einsum, order, rules) for order in _orders(einsum)])


def all_tilings(einsum: PlainEinsum, rules: Rules) -> tuple[Int64, Int64]:
    """Return buffer and traffic of every tiling in every order of loops that may be best, in words, shape [tilings].

    The cloud of which the curve is the lower edge [huang24, Fig. 1].

    Raises:
        UserError: the einsum is too large.
    """
    check_words(einsum.name, 2 * sum(tensor.units for tensor in einsum.tensors) * einsum.macs)
    choices = [tile_sizes(extent, rules.tiles) for extent in einsum.extents]
    sizes, traffic = np.concatenate([_points(einsum, choices, order, rules) for order in _orders(einsum)], axis=1)
    return sizes, traffic


def innermost_loops(einsum: PlainEinsum, tiling: tuple[int, ...], rules: Rules) -> tuple[str, ...]:
    """Return the ranks of the innermost loops, innermost first, with which a tiling moves least."""
    choices = [np.array([tile], dtype=np.int64) for tile in tiling]
    best = min(_orders(einsum), key=lambda order: int(_traffic(einsum, choices, order, rules).ravel()[0]))
    trips = [-(-extent // tile) for extent, tile in zip(einsum.extents, tiling, strict=True)]
    return tuple(einsum.ranks[rank] for rank in best.innermost if trips[rank] > 1)


def _orders(einsum: PlainEinsum) -> Iterator[_Order]:
    """Yield the orders that may be best: group by group of ranks that index the same tensors, while a tile stays."""
    groups: dict[frozenset[int], list[int]] = {}
    for rank in range(len(einsum.ranks)):
        stays = frozenset(number for number, tensor in enumerate(einsum.tensors) if rank not in tensor.ranks)
        if stays:
            groups.setdefault(stays, []).append(rank)

    def extended(inside: tuple[frozenset[int], ...], alive: frozenset[int]) -> Iterator[tuple[frozenset[int], ...]]:
        following = [group for group in groups if group not in inside and group & alive]
        if not following:
            yield inside
        for group in following:
            yield from extended((*inside, group), alive & group)

    for sequence in extended((), frozenset(range(len(einsum.tensors)))):
        held = []
        for number in range(len(einsum.tensors)):
            lasts = next((at for at, group in enumerate(sequence) if number not in group), len(sequence))
            held.append(frozenset(rank for group in sequence[:lasts] for rank in groups[group]))
        yield _Order(tuple(rank for group in sequence for rank in groups[group]), tuple(held))


def _order_curve(einsum: PlainEinsum, order: _Order, rules: Rules) -> Curve:
    choices = [
        tile_sizes(extent, rules.tiles) if _matters(einsum, order, rank) else np.ones(1, dtype=np.int64)
        for rank, extent in enumerate(einsum.extents)
    ]
    sizes, traffic = _points(einsum, choices, order, rules)
    kept = front_numbers(sizes, traffic)
    places = np.unravel_index(kept, tuple(map(len, choices)))
    tilings = np.stack([column[place] for column, place in zip(choices, places, strict=True)], axis=1)
    return front(sizes[kept], traffic[kept], tilings)


def _points(einsum: PlainEinsum, choices: list[Int64], order: _Order, rules: Rules) -> tuple[Int64, Int64]:
    """Return buffer and traffic of all tilings of chosen tile sizes, shape [tilings]."""
    shape = tuple(map(len, choices))
    if prod(shape) > MOST_TILINGS:
        raise UserError(f"{einsum.name}: {prod(shape):,} tilings against {MOST_TILINGS:,} at most (--tiles divisors)")
    sizes = np.broadcast_to(_sizes(einsum, choices), shape).ravel()
    return sizes, np.broadcast_to(_traffic(einsum, choices, order, rules), shape).ravel()


def _matters(einsum: PlainEinsum, order: _Order, rank: int) -> bool:
    """Return whether some tensor is moved once more for each trip of the rank."""
    return any(
        rank not in tensor.ranks and rank not in held for tensor, held in zip(einsum.tensors, order.stays, strict=True)
    )


def _sizes(einsum: PlainEinsum, choices: list[Int64]) -> Int64:
    """Return the words that the tiles take, an axis per rank."""
    axes = _axes(choices)
    tiles = (prod((axes[rank] for rank in tensor.ranks), start=np.array(tensor.units)) for tensor in einsum.tensors)
    return np.asarray(sum(tiles))


def _traffic(einsum: PlainEinsum, choices: list[Int64], order: _Order, rules: Rules) -> Int64:
    """Return the words that move, an axis per rank."""
    trips = _axes([trips_of(extent, tiles) for extent, tiles in zip(einsum.extents, choices, strict=True)])
    parts = []
    for tensor, held in zip(einsum.tensors, order.stays, strict=True):
        repeated = [trips[rank] for rank in range(len(trips)) if rank not in tensor.ranks and rank not in held]
        words = einsum.words(tensor) * tensor.units
        moved: Int64 = prod(repeated, start=np.array(words))
        parts.append(rules.result_words(moved, words) if tensor.is_result else moved)
    return np.asarray(sum(parts))


def _axes(columns: list[Int64]) -> list[Int64]:
    return [column.reshape(-1, *[1] * (len(columns) - 1 - number)) for number, column in enumerate(columns)]


def gemm(m: int, k: int, n: int) -> PlainEinsum:
    """Return ``A[m, k] B[k, n] -> C[m, n]``."""
    return PlainEinsum(
        name=f"gemm {m},{k},{n}",
        ranks=("M", "K", "N"),
        extents=(m, k, n),
        tensors=(PlainTensor("A", (0, 1)), PlainTensor("B", (1, 2)), PlainTensor("C", (0, 2), is_result=True)),
    )


class Attention(Struct, frozen=True):
    """Products ``Q[rows, width] K[keys, width]`` with a softmax over the keys, times ``V[keys, value_width]``.

    Attributes:
        rows: how many queries read the same keys and values, over all heads of a group.
        keys: how many keys, and as many values.
        width: words of a query and of a key.
        value_width: words of a value and of a result.
        is_masked: whether some scores may not be needed.
    """

    rows: int
    keys: int
    width: int
    value_width: int
    is_masked: bool = False

    @property
    def words(self) -> tuple[int, int, int, int]:
        """Words of queries, keys, values and results."""
        key_words, value_words = self.keys * self.width, self.keys * self.value_width
        return self.rows * self.width, key_words, value_words, self.rows * self.value_width

    @property
    def scores(self) -> int:
        """Words of the score matrix, between the two products."""
        return self.rows * self.keys

    @property
    def macs(self) -> int:
        """Multiplications of the two products."""
        return self.rows * self.keys * (self.width + self.value_width)


def attention_curve(shape: Attention, rules: Rules, moved: tuple[bool, bool, bool, bool] = (True,) * 4) -> Curve:
    """Return the curve of attention whose scores never leave the buffer [dao22].

    Two loop orders are tried. Rows stay in the buffer while all keys and values pass, which are read once per tile of
    rows. Or keys and values stay while all rows pass: per tile of keys, results are then read, rescaled and written,
    with the largest score and the sum of each row. The buffer holds a tile of each of the four arrays, the
    scores of one row of the tile and two words per row.

    Args:
        shape: of one group of heads.
        rules: how traffic is counted.
        moved: whether queries, keys, values and results move; those that do not are held whole, outside the buffer.
    """
    # No order moves more than 8 words per multiplication.
    check_words(f"attention {shape.rows},{shape.keys}", 8 * max(1, shape.macs))
    rows, keys = tile_sizes(shape.rows, rules.tiles)[:, None], tile_sizes(shape.keys, rules.tiles)[None, :]
    row_trips, key_trips = trips_of(shape.rows, rows), trips_of(shape.keys, keys)
    queries, key_words, value_words, results = (
        words if is_moved else 0 for words, is_moved in zip(shape.words, moved, strict=True)
    )
    tiles = (rows * shape.width, keys * shape.width, keys * shape.value_width, rows * shape.value_width)
    buffer = sum((tile * int(is_moved) for tile, is_moved in zip(tiles, moved, strict=True)), keys + 2 * rows)
    first_reads = 0 if rules.elides_first_read else results
    rows_stay = queries + results + first_reads + (key_words + value_words) * row_trips
    statistics = 4 * shape.rows * (key_trips - 1)  # two words per row, written and read between tiles of keys
    keys_stay = key_words + value_words + queries * key_trips + results * (2 * key_trips - 1) + first_reads + statistics
    return least([front(buffer, rows_stay), front(buffer, keys_stay)])

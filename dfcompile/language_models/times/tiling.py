"""Tiles of a matrix product in a memory on the chip: whole granules, double buffers, accumulators."""

import math
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

MOST_SPLITS = 64  # even splits of an extent that are tried; above that powers of two


class Product(Struct, frozen=True):
    """``C[m, n] = A[m, k] B[k, n]``, and the bytes of an element of each; ``sum_bytes`` is an accumulator's."""

    m: int
    k: int
    n: int
    a_bytes: float = 2.0
    b_bytes: float = 2.0
    c_bytes: float = 2.0
    sum_bytes: float = 4.0

    @property
    def compulsory_bytes(self) -> float:
        """Every operand once."""
        return self.m * self.k * self.a_bytes + self.k * self.n * self.b_bytes + self.m * self.n * self.c_bytes


class Memory(Struct, frozen=True):
    """What tiles stand in: bytes, whether streamed operands are held twice, and what extents are multiples of."""

    capacity_bytes: float
    granule: tuple[int, int, int] = (1, 1, 1)
    buffers: int = 2


class Tile(Struct, frozen=True):
    """A tile, what stays while the others stream (C, A or B; K: parts of sums are spilled), and the traffic."""

    m: int
    k: int
    n: int
    order: str
    traffic_bytes: float
    held_bytes: float

    @property
    def name(self) -> str:
        """Extents and order as text."""
        return f"{self.m}x{self.k}x{self.n}/{self.order}"


def lower_bound_bytes(product: Product, capacity_bytes: float) -> float:
    """Return bytes that no tiling is below: every operand once, and ``2 M N K / sqrt(S) - 2 S`` elements.

    The second term alone, with ``+ M N`` instead of ``- 2 S``, is no bound: with A resident it is too large
    [smith19]. Elements are counted by the smallest, so that mixed formats stay a bound.
    """
    element = min(product.a_bytes, product.b_bytes, product.c_bytes)
    held = capacity_bytes / element
    words = 2 * product.m * product.n * product.k / math.sqrt(held) - 2 * held if held > 0 else 0.0
    return max(product.compulsory_bytes, words * element)


@lru_cache(maxsize=4096)
def best_tile(product: Product, memory: Memory) -> Tile | None:
    """Return the tile of the least traffic, of those the one that holds least; none if not even a granule fits."""
    return min(
        _tiles(product, memory), key=lambda tile: (tile.traffic_bytes, tile.held_bytes, tile.order), default=None
    )


def extents_of(extent: int, granule: int) -> tuple[int, ...]:
    """Return the extents of tiles that are tried: even splits and powers of two, as whole granules."""
    splits = {-(-extent // parts) for parts in range(1, min(extent, MOST_SPLITS) + 1)}
    size = granule
    while size < extent:
        splits.add(size)
        size *= 2
    return tuple(sorted({-(-one // granule) * granule for one in splits}))


def _tiles(product: Product, memory: Memory) -> Iterator[Tile]:
    rows, depths, columns = (
        extents_of(extent, granule)
        for extent, granule in zip((product.m, product.k, product.n), memory.granule, strict=True)
    )
    for tm in rows:
        for tn in columns:
            yield from _fitting(_resident_c(product, memory, tm, tn), memory)
    for tm in rows:
        yield from _fitting(_resident_a(product, memory, tm, product.k), memory)
        for tk in depths:
            yield from _fitting(_resident_a(product, memory, tm, tk), memory)
    for tn in columns:
        yield from _fitting(_resident_b(product, memory, tn), memory)


def _fitting(tile: Tile, memory: Memory) -> Iterator[Tile]:
    if tile.held_bytes <= memory.capacity_bytes:
        yield tile


def _passes(extent: int, tile: int) -> int:
    return -(-extent // tile)


def _held(product: Product, tile: tuple[int, int, int], copies: tuple[int, int, int]) -> float:
    m, k, n = tile
    a, b, c = copies
    return m * k * product.a_bytes * a + k * n * product.b_bytes * b + m * n * product.sum_bytes * c


def _resident_c(product: Product, memory: Memory, tm: int, tn: int) -> Tile:
    """Sums stay; a thin slice of both operands streams by."""
    tk = memory.granule[1] if memory.granule[1] > 1 else memory.granule[0]
    traffic = (
        product.m * product.k * product.a_bytes * _passes(product.n, tn)
        + product.k * product.n * product.b_bytes * _passes(product.m, tm)
        + product.m * product.n * product.c_bytes
    )
    return Tile(tm, tk, tn, "C", traffic, _held(product, (tm, tk, tn), (memory.buffers, memory.buffers, 1)))


def _resident_a(product: Product, memory: Memory, tm: int, tk: int) -> Tile:
    """A panel of A stays; with ``tk < k`` it is a part of one, and sums are read and written again."""
    tn, passes = memory.granule[2], _passes(product.k, tk)
    spilled = 2 * product.m * product.n * product.sum_bytes * (passes - 1)
    traffic = (
        product.m * product.k * product.a_bytes
        + product.k * product.n * product.b_bytes * _passes(product.m, tm)
        + product.m * product.n * product.c_bytes
        + spilled
    )
    order = "A" if passes == 1 else "K"
    return Tile(tm, tk, tn, order, traffic, _held(product, (tm, tk, tn), (1, memory.buffers, 1)))


def _resident_b(product: Product, memory: Memory, tn: int) -> Tile:
    """A panel of B stays."""
    tm = memory.granule[0]
    traffic = (
        product.m * product.k * product.a_bytes * _passes(product.n, tn)
        + product.k * product.n * product.b_bytes
        + product.m * product.n * product.c_bytes
    )
    tile = (tm, product.k, tn)
    return Tile(*tile, "B", traffic, _held(product, tile, (memory.buffers, 1, 1)))

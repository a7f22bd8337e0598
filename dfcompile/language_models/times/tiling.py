"""Tiles of a matrix product in a memory on the chip: whole granules, double buffers, accumulators."""

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


@lru_cache(maxsize=4096)
def best_tile(product: Product, memory: Memory) -> Tile | None:
    """Return the tile of the least traffic, of those the one that holds least; none if not even a granule fits."""
    fitting = (tile for tile in _tiles(product, memory) if tile.held_bytes <= memory.capacity_bytes)
    return min(fitting, key=lambda tile: (tile.traffic_bytes, tile.held_bytes, tile.order), default=None)


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
    gm, gk, gn = memory.granule
    for tm in rows:
        for tn in columns:
            yield _tile(product, memory, (tm, gk if gk > 1 else gm, tn), "C")
    for tm in rows:
        for tk in (product.k, *depths):
            yield _tile(product, memory, (tm, tk, gn), "A")
    for tn in columns:
        yield _tile(product, memory, (gm, product.k, tn), "B")


def _tile(product: Product, memory: Memory, extents: tuple[int, int, int], stays: str) -> Tile:
    """Return the tile of which sums stay while a thin slice of both operands streams by, or a panel of A or of B.

    Of a part of a panel of A, sums are read and written again.
    """
    m, k, n = extents
    a_passes, a_copies = (1, 1) if stays == "A" else (-(-product.n // n), memory.buffers)
    b_passes, b_copies = (1, 1) if stays == "B" else (-(-product.m // m), memory.buffers)
    parts = -(-product.k // k) if stays == "A" else 1
    traffic = (
        product.m * product.k * product.a_bytes * a_passes
        + product.k * product.n * product.b_bytes * b_passes
        + product.m * product.n * product.c_bytes
        + 2 * product.m * product.n * product.sum_bytes * (parts - 1)
    )
    held = m * k * product.a_bytes * a_copies + k * n * product.b_bytes * b_copies + m * n * product.sum_bytes
    return Tile(m, k, n, "K" if parts > 1 else stays, traffic, held)

"""Tiles: published figures, and properties of drawn products."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.language_models.times.tiled import Memory, Product, best_tile, extents_of

DATA = Path(__file__).parents[3] / "data" / "llm"
CACHES = {"NVL-AX": 36 * 2**20, "JGS": 120 * 2**20}
ROWS = list(csv.DictReader((DATA / "tiling_compare.csv").read_text().splitlines()))
extents = st.integers(1, 600)


def lower_bound_bytes(product: Product, capacity_bytes: float) -> float:
    """Return bytes that no tiling is below: every operand once, and ``2 M N K / sqrt(S) - 2 S`` elements.

    The second term alone, with ``+ M N`` instead of ``- 2 S``, is no bound: with A resident it is too large
    [smith19]. Elements are counted by the smallest, so that mixed formats stay a bound.
    """
    element = min(product.a_bytes, product.b_bytes, product.c_bytes)
    held = capacity_bytes / element
    words = 2 * product.m * product.n * product.k / math.sqrt(held) - 2 * held if held > 0 else 0.0
    return max(product.compulsory_bytes, words * element)


def test_forty_tilings() -> None:
    assert len(ROWS) == 40
    for row in ROWS:
        m, k, n, cache = int(row["M"]), int(row["K"]), int(row["N"]), CACHES[row["arch"]]
        real = best_tile(Product(m, k, n), Memory(cache, (16, 16, 16)))
        ideal = best_tile(Product(m, k, n, sum_bytes=2), Memory(cache, buffers=1))

        assert real is not None
        assert ideal is not None
        assert (real.name, real.traffic_bytes) == (row["int_tile"], int(row["int_bytes"]))
        assert (ideal.name, ideal.traffic_bytes) == (row["ideal_tile"], int(row["ideal_bytes"]))
        assert lower_bound_bytes(Product(m, k, n), cache) == int(row["lower_bound"])


@given(extents, extents, extents, st.integers(10, 100_000), st.sampled_from([1, 4, 16]))
def test_tiles_fit_are_aligned_and_never_below_the_bound(m: int, k: int, n: int, cache: int, granule: int) -> None:
    product = Product(m, k, n)
    tile = best_tile(product, Memory(cache, (granule, granule, granule)))

    if tile is not None:
        assert tile.held_bytes <= cache
        assert (tile.m % granule, tile.n % granule) == (0, 0)
        assert tile.traffic_bytes >= lower_bound_bytes(product, cache)


@given(extents, extents, extents)
def test_what_fits_whole_moves_once(m: int, k: int, n: int) -> None:
    product = Product(m, k, n)
    tile = best_tile(product, Memory(4 * product.compulsory_bytes + 64 * (m + k + n)))

    assert tile is not None
    assert tile.traffic_bytes == product.compulsory_bytes


def tile_of(extents: Sequence[float], cache: float) -> tuple[float, float, float]:
    """Return the tile that a sheet of formulas takes for the best one of a product of 16-bit numbers."""
    small, middle, large = sorted(range(3), key=lambda at: extents[at])
    tile = list(extents)
    side = (cache / 3 / 2) ** (1 / 2)
    if extents[small] >= side:
        return side, side, side
    twice = extents[small] * 2
    side = (-twice + math.sqrt(twice**2 + 4 * (cache / 2))) / 2
    if extents[middle] >= side:
        tile[middle] = tile[large] = side
    else:
        room = cache - (extents[small] * extents[middle] * 2)
        tile[large] = min(tile[large], room / (2 * (extents[small] + extents[middle])))
    return tile[0], tile[1], tile[2]


@given(extents, extents, extents, st.integers(600, 50_000))
def test_trap_t12_no_worse_than_the_notebooks_tile_with_its_result(m: int, k: int, n: int, cache: int) -> None:
    """Its tile is made whole by rounding down, which no real tiling gains by."""
    tm, tk, tn = (max(1, int(extent)) for extent in tile_of((m, k, n), cache))
    passes_m, passes_n, passes_k = -(-m // tm), -(-n // tn), -(-k // tk)
    spilled = 2 * m * n * 2 * (passes_k - 1)
    theirs = 2 * (m * k * passes_n + k * n * passes_m + m * n) + spilled
    ours = best_tile(Product(m, k, n, sum_bytes=2), Memory(cache, buffers=1))

    assert ours is not None
    assert ours.traffic_bytes <= theirs


def test_trap_n7_the_usual_formula_is_no_bound() -> None:
    """With A resident and N large, the traffic is far below ``2 M N K / sqrt(S) + M N``."""
    side, n = 64, 10_000
    product = Product(side, side, n, 1, 1, 1, 1)
    cache = side * side + 3 * side
    tile = best_tile(product, Memory(cache, buffers=1))

    assert tile is not None
    assert tile.traffic_bytes == product.compulsory_bytes
    assert 2 * side * side * n / cache**0.5 + side * n > tile.traffic_bytes
    assert lower_bound_bytes(product, cache) <= tile.traffic_bytes


@pytest.mark.parametrize("extent", [1, 7, 64, 100_003])
def test_extents_cover_the_whole(extent: int) -> None:
    assert max(extents_of(extent, 16)) >= extent

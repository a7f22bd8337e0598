"""Chains of products that hand over row tiles: the least traffic over segments, tiles and weights that are held."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from dfcompile.bounds.curve import Curve, Int64, check_words, front, least, total
from dfcompile.bounds.einsum.plain import plain_curve
from dfcompile.bounds.einsum.products import gemm
from dfcompile.bounds.tilings import Rules, tile_sizes, trips_of
from dfcompile.errors import UserError

MOST_LAYERS = 12  # of a chain: 2 ** (layers - 1) ways to cut it


def chain_curve(rows: int, widths: Sequence[int], rules: Rules) -> Curve:
    """Return the curve of ``X[rows, w0] W1[w0, w1] W2[w1, w2] …`` over all ways to cut the chain into segments.

    A segment of one layer is a product by itself; of several, row tiles pass through all its layers. Segments run one
    after the other, each with the whole buffer. All segmentations, tiles and sets of held weights are joined before
    any point is dropped.

    Args:
        rows: of the input.
        widths: of the input and of each layer's result, at least two.
        rules: how traffic is counted.

    Raises:
        UserError: the chain is too long or too large.
    """
    layers = len(widths) - 1
    if not 1 <= layers <= MOST_LAYERS:
        raise UserError(f"chain: found {layers} layers against 1 to {MOST_LAYERS}")
    check_words("chain", 4 * rows * sum(a * b for a, b in pairwise(widths)))
    segments = {
        (first, last): segment_curve(rows, widths[first : last + 1], rules)
        for first in range(layers)
        for last in range(first + 1, layers + 1)
    }
    found = []
    for cuts in product((False, True), repeat=layers - 1):
        bounds = [0, *(place + 1 for place, is_cut in enumerate(cuts) if is_cut), layers]
        found.append(total([segments[pair] for pair in pairwise(bounds)]))
    return least(found)


def segment_curve(rows: int, widths: Sequence[int], rules: Rules) -> Curve:
    """Return the curve of consecutive layers between which row tiles never leave the buffer."""
    if len(widths) == 2:
        return plain_curve(gemm(rows, widths[0], widths[1]), rules)
    layers = len(widths) - 1
    found = [
        front(*_row_tiles(rows, widths, rules, (stages, held)))
        for stages in _stages(layers)
        for held in product((False, True), repeat=layers)
    ]
    if layers == 2:
        found.append(front(*_rows_inside(rows, widths, rules)))
    return least(found)


def _stages(layers: int, first: int = 0) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the ways to take layers one by one, or two with column slices between them."""
    if first == layers:
        yield ()
    for count in (1, 2):
        if first + count <= layers:
            for rest in _stages(layers, first + count):
                yield (tuple(range(first, first + count)), *rest)


def _row_tiles(
    rows: int, widths: Sequence[int], rules: Rules, choice: tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]
) -> tuple[Int64, Int64]:
    """Return sizes and traffic for every row tile, all stages done for one before the next.

    The first layer, by itself, reads its tile column by column and adds up a whole tile of its result; the last one
    has a whole tile and writes its result column by column; those between have both whole. Of two layers at once the
    first makes a column of its result, from a whole tile, which the second adds to a whole tile. Weights are held
    throughout, or pass word by word, once per row tile.
    """
    stages, held = choice
    tiles = tile_sizes(rows, rules.tiles)
    weights = [a * b for a, b in pairwise(widths)]
    kept = sum(words for words, is_held in zip(weights, held, strict=True) if is_held)
    widest = np.zeros(len(tiles), dtype=np.int64)
    for stage in stages:
        first, last = stage[0], stage[-1]
        taken = 1 if first == last == 0 else widths[first]
        given = 1 if first == last == len(weights) - 1 else widths[last + 1]
        between = len(stage) - 1  # columns
        passing = 0 if all(held[layer] for layer in stage) else 1
        widest = np.maximum(widest, tiles * (taken + between + given) + passing)
    streamed = sum(weights) - kept
    return widest + kept, _ends(rows, widths, rules) + kept + streamed * trips_of(rows, tiles)


def _rows_inside(rows: int, widths: Sequence[int], rules: Rules) -> tuple[Int64, Int64]:
    """Return sizes and traffic of two layers with column slices outside and rows inside.

    Both layers' weights of a slice stay while all rows pass, one at a time and column by column: the input is read
    once per slice, the result read and written.
    """
    wide, middle, narrow = widths
    slices = tile_sizes(middle, rules.tiles)
    count = trips_of(middle, slices)
    results = rules.result_words(rows * narrow, rows * narrow) + 2 * rows * narrow * (count - 1)
    return slices * (wide + narrow + 1) + 1, middle * (wide + narrow) + rows * wide * count + results


def _ends(rows: int, widths: Sequence[int], rules: Rules) -> int:
    return rows * widths[0] + rules.result_words(rows * widths[-1], rows * widths[-1])

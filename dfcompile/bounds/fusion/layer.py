"""A product as a layer of a chain: its weights pass word by word, and its ends may stay on the chip."""

from dfcompile.bounds.curve import Curve, front, least
from dfcompile.bounds.tilings import Rules, tile_sizes, trips_of


def layer_curve(rows: int, taken: int, given: int, rules: Rules, held: tuple[bool, bool] = (False, False)) -> Curve:
    """Return the curve of ``X[rows, taken] W[taken, given]`` with a buffer for X and the result and one for weights.

    The tile of the weights may be smaller than those of the operand and the result ask for: a word passes at a time,
    once per row tile, or a whole tile stays [huang24; docs/bounds.md]. With row tiles of p, a = rows / p:

    - the result stays: ``pn + p + 1`` words, X is read once per column tile, the weights a times;
    - X stays: ``pk + p + 1`` words, the result is visited once per tile of the sum, the weights are read a times;
    - the weights stay: ``kn + k + n`` words, both.

    Args:
        rows: of the operand and the result.
        taken: columns of the operand.
        given: columns of the result.
        rules: how traffic is counted.
        held: whether the operand and the result are on the chip as a whole: they take their words, and do not move.
    """
    p, k, n = (tile_sizes(extent, rules.tiles) for extent in (rows, taken, given))
    p_trips, k_trips, n_trips = (trips_of(e, t) for e, t in ((rows, p), (taken, k), (given, n)))
    reads, writes = (int(not each) for each in held)
    operand, weights, result = reads * rows * taken, taken * given, writes * rows * given
    written, written_once = rules.result_words(result * k_trips, result), rules.result_words(result, result)
    tables = (
        (reads * p[:, None] + writes * p[:, None] * n + 1,
         operand * n_trips + weights * p_trips[:, None] + written_once),
        (reads * p[:, None] * k + writes * p[:, None] + 1,
         operand + weights * p_trips[:, None] + written),
        (reads * k[:, None] + writes * n + k[:, None] * n,
         operand * n_trips + weights + written[:, None]),
    )  # fmt: skip
    beside = rows * taken * (1 - reads) + rows * given * (1 - writes)
    return least([front(sizes.ravel(), traffic.ravel()) for sizes, traffic in tables]).shifted(beside)

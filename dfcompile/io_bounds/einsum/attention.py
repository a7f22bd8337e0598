"""Attention in one pass, as in FlashAttention: scores and softmax stay in the buffer."""

from msgspec import Struct

from dfcompile.io_bounds.curve import Curve, Rules, check_words, front, least, tile_sizes, trips_of


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

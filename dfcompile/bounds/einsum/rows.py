"""Operators without products: elementwise ones, reductions, softmax and normalisations, row by row."""

from dataclasses import dataclass

import numpy as np

from dfcompile.bounds.curve import Curve, front
from dfcompile.bounds.tilings import Rules


@dataclass(frozen=True, slots=True)
class Rows:
    """An operator that passes over each row of its first operand one or several times.

    Attributes:
        row: words of a row that belong together; 1 of an elementwise operator.
        passes: over a row if it is not held: 2 where a figure of all the row is needed for each of its words.
    """

    row: int = 1
    passes: int = 1


def rows_curve(shape: Rows, words: tuple[int, ...], results: tuple[int, ...], rules: Rules) -> Curve:
    """Return the curve of an operator row by row.

    The first operand is read once if a row is held, else as often as there are passes; with one word of each operand
    and result in the buffer, and two figures of a row. An operand of fewer words than the first (a scale, a bias) is
    held, or read anew for each word of the first.

    Args:
        shape: how it goes over its rows.
        words: of the operands that move; the first comes first, 0 words if it is held beside the buffer.
        results: words of the results that move.
        rules: how traffic is counted.
    """
    first, others = (words[0], words[1:]) if words else (0, ())
    written = sum(results)
    if not rules.elides_first_read:
        written *= 2
    whole = [count for count in others if count >= first or first == 0]
    small = [count for count in others if count < first]
    least_size = len(words) + len(results) + (2 if shape.passes > 1 else 0)
    points = []
    for is_row_held in (False, True):
        for is_small_held in (False, True):
            size = least_size + (shape.row - 1 if is_row_held else 0) + (sum(small) if is_small_held else 0)
            reads = first * (1 if is_row_held else shape.passes) + sum(whole)
            reads += sum(small) if is_small_held else first * len(small)
            points.append((size, reads + written))
    columns = np.array(points, dtype=np.int64)
    return front(columns[:, 0], columns[:, 1])

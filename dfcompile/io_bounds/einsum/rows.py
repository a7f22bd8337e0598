"""Operators without products: elementwise ones, reductions, softmax and normalisations, row by row."""

from itertools import product

import numpy as np
from msgspec import Struct

from dfcompile.io_bounds.curve import Curve, front
from dfcompile.io_bounds.operand import Operand
from dfcompile.io_bounds.tilings import Rules


class Rows(Struct, frozen=True):
    """An operator that passes over each row of its first operand one or several times.

    Attributes:
        row: words of a row that belong together; 1 of an elementwise operator.
        passes: over a row if it is not held: 2 where a figure of all the row is needed for each of its words.
    """

    row: int = 1
    passes: int = 1


def rows_curve(shape: Rows, operands: tuple[Operand, ...], results: tuple[Operand, ...], rules: Rules) -> Curve:
    """Return the curve of an operator row by row.

    The first operand is read once if a row is held, else as often as there are passes; with one word of each operand
    and result in the buffer, and two figures of a row. An operand of fewer words than the first (a scale, a bias) is
    held, or read anew for each word of the first.

    Args:
        shape: how it goes over its rows.
        operands: that move; the first comes first, also, of no words, if it is held beside the buffer.
        results: that move.
        rules: how traffic is counted.
    """
    first, others = (operands[0], operands[1:]) if operands else (Operand("", 0, 0), ())
    written = sum(each.size for each in results)
    if not rules.elides_first_read:
        written *= 2
    whole = [each for each in others if each.words >= first.words or first.words == 0]
    small = [each for each in others if each.words < first.words]
    least_size = sum(each.units for each in (*operands, *results)) + (2 * first.units if shape.passes > 1 else 0)
    points = []
    for is_row_held, is_small_held in product((False, True), repeat=2):
        size = least_size + (shape.row - 1) * first.units * is_row_held
        size += sum(each.size for each in small) * is_small_held
        reads = first.size * (1 if is_row_held else shape.passes) + sum(each.size for each in whole)
        reads += sum(each.size if is_small_held else first.words * each.units for each in small)
        points.append((size, reads + written))
    columns = np.array(points, dtype=np.int64)
    return front(columns[:, 0], columns[:, 1])

"""Tasks of which a bound knows the same count as one with a number: equal layers have thousands, of a few kinds.

And of figures that take too many values to look at each, some are looked at.
"""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import distinct

_LOOKS = 2**22  # at tasks, over all pairs of two values: a tenth of a second
_TIMES = 48
_FEWEST_TIMES = 3


def alike(*columns: Int64) -> tuple[Int64, Int64]:
    """Return tasks sorted so that those of equal figures follow one another, and where each kind of them begins.

    Args:
        columns: figures of the tasks, shape [tasks] each; the last one is the first to be sorted by.
    """
    order = np.lexsort(columns)
    is_first = np.ones(len(order), dtype=np.bool_)
    if len(order):
        is_first[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    return order, np.flatnonzero(is_first)


def largest_sum(values: Int64, counts: Int64, most: int) -> int:
    """Return the sum of so many of the largest values, of all if they are fewer.

    Args:
        values: shape [kinds].
        counts: how often each is there, once at least, shape [kinds].
        most: so many are added up.
    """
    if 0 < most < len(values):
        least = int(np.partition(values, len(values) - most)[len(values) - most])
        above = values > least
        values, counts = values[above], counts[above]
        others = most - int(counts.sum())
        if others >= 0:
            return int(values @ counts) + others * least
    descending = np.argsort(-values)
    return int(first_sums(values[descending], counts[descending], most))


def first_sums(values: Int64, counts: Int64, most: int) -> Int64:
    """Return the sums of so many first values, of all if they are fewer, each there a number of times.

    Args:
        values: shape [kinds].
        counts: how often each is there, shape [..., kinds].
        most: so many are added up.
    """
    # Summed by parts: what the first so many kinds hold counts with the step from the last one's value to the next.
    sums: Int64 = np.minimum(np.cumsum(counts, axis=-1), most) @ -np.diff(values, append=0)
    return sums


def some_values(values: Int64, most: int) -> list[int]:
    """Return so many of the different values at most, evenly spread, the least and the largest among them."""
    different = distinct(values)
    chosen: list[int] = different[distinct(np.linspace(0, len(different) - 1, most).astype(np.int64))].tolist()
    return chosen


def some_pairs(tasks: int) -> int:
    """Return how many values each of two figures are tried that so many tasks have: looking at them takes a while."""
    return max(min(_TIMES, int((_LOOKS / tasks) ** 0.5)), _FEWEST_TIMES)

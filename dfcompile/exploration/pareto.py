"""Pareto sets: which figures no others are as small as, and how far a set is from what may exist."""

from collections.abc import Sequence
from math import inf

import numpy as np

from dfcompile.exploration.objectives import Figures


def covers(one: Figures, other: Figures) -> bool:
    """Return whether no figure of one is larger than the other's."""
    return all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def pareto_set(found: Sequence[Figures]) -> tuple[int, ...]:
    """Return the numbers of those that no others cover, ascending; of equal ones the first.

    >>> pareto_set([(2, 1), (1, 2), (2, 2), (1, 2)])
    (0, 1)
    """
    kept: list[int] = []
    for number in sorted(range(len(found)), key=lambda each: (found[each], each)):
        if not any(covers(found[other], found[number]) for other in kept):
            kept.append(number)
    return tuple(sorted(kept))


def largest_gap(front: Sequence[Figures], bounds: Sequence[Figures]) -> float:
    """Return by what part every figure of something is at most better than those of one in a front.

    It is 0 if one of the front covers a bound, else the least e with which one of ``1 + e`` times better figures would;
    of several bounds the largest of these.

    Args:
        front: figures that were attained.
        bounds: what no figures fall below.

    >>> largest_gap([(4, 10), (8, 5)], [(4, 8), (9, 9)])
    0.25
    """
    if not front or not bounds:
        return inf if bounds else 0.0
    attained = np.array(front, dtype=np.float64)[:, None, :]
    least = np.array(bounds, dtype=np.float64)[None, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(attained <= least, 1.0, attained / least)
    return float(ratio.max(axis=2).min(axis=0).max() - 1.0)

"""Splits of an array over the chips along one dimension of the network: which of them has which element.

A split is a function of the flat offset of an element, the same under any shape of the array, so that a split of
``[tokens, hidden]`` by hidden is one of ``[tokens, heads, 64]`` by heads wherever it has the same elements.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dfcompile.dfmodel_backend.workload.graph import Split
from dfcompile.distinct import distinct

Counted = tuple[tuple[tuple[int, ...], int], ...]  # coordinates of several splits, and how many elements have them

PIECES = 1 << 20  # of an array at a time


def split_of(elements: int, stride: int, extent: int, chips: Sequence[int], place: int) -> Split:
    """Return the split of a digit ``offset // stride % extent`` along one of the dimensions that share it.

    Args:
        elements: of the array.
        stride: of the digit.
        extent: of the digit.
        chips: along each of the dimensions, the one that parts the digit first in front.
        place: of the dimension that is asked for.
    """
    moduli = [stride * extent]
    block = extent
    for count in chips[:place]:
        block = -(-block // count)
        moduli.append(stride * block)
    return canonical(elements, moduli, stride * -(-block // chips[place]))


def canonical(elements: int, moduli: Sequence[int], block: int) -> Split:
    """Return a split of an array in its shortest form: moduli that change nothing are left out."""
    kept = [elements]
    for modulus in moduli:
        if modulus < kept[-1]:
            while kept and kept[-1] % modulus == 0:  # what is divided by a multiple first has the same remainder
                kept.pop()
            kept.append(modulus)
    return Split((*kept,), block) if block < kept[-1] else Split((elements,), elements)


@lru_cache(maxsize=1 << 16)
def joint_counts(splits: tuple[Split, ...], elements: int) -> Counted:
    """Return how many elements of an array have each combination of coordinates, those that none has left out."""
    found: dict[tuple[int, ...], int] = {(): 1}
    numbers: list[int] = []
    left = elements
    for group, low, period in _groups(splits, elements):
        left //= period // low
        numbers += group
        here = _counts_in_period([splits[number] for number in group], low, period)
        found = {(*before, *after): many * more for before, many in found.items() for after, more in here.items()}
    order = [numbers.index(number) for number in range(len(splits))]
    return tuple((tuple(key[place] for place in order), many * left) for key, many in found.items())


def _groups(splits: Sequence[Split], elements: int) -> list[tuple[list[int], int, int]]:
    """Return splits that depend on the same digits of the offset, with the stride and the period of these digits.

    Splits of different groups are independent of each other: each combination of coordinates occurs.
    """
    groups: list[tuple[list[int], int, int]] = []
    for number, split in enumerate(splits):
        group, low, period = [number], split.granule, split.moduli[0]
        if elements % period:
            low, period = math.gcd(low, elements), elements
        if low == period:  # all elements have one coordinate
            low = period = 1
        joined = True
        while joined:
            joined = False
            for other in groups:
                if low % other[2] and other[1] % period:
                    groups.remove(other)
                    group, low, period = [*other[0], *group], math.gcd(low, other[1]), math.lcm(period, other[2])
                    joined = True
                    break
        groups.append((group, low, period))
    return groups


def _counts_in_period(splits: Sequence[Split], low: int, period: int) -> dict[tuple[int, ...], int]:
    starts = distinct(np.concatenate([split.starts(period) for split in splits]))
    lengths = np.diff(np.append(starts, period)) // low
    counts: dict[tuple[int, ...], int] = {}
    for first in range(0, len(starts), PIECES):
        part = starts[first : first + PIECES]
        keys, inverse = np.unique(
            np.stack([split.coordinates(part) for split in splits], axis=1), axis=0, return_inverse=True
        )
        sums = np.bincount(inverse.ravel(), weights=lengths[first : first + PIECES])
        for key, many in zip(keys.tolist(), sums.tolist(), strict=True):
            counts[tuple(key)] = counts.get(tuple(key), 0) + round(many)
    return counts


@lru_cache(maxsize=1 << 16)
def largest_share(splits: tuple[Split, ...], elements: int) -> int:
    """Return the elements of the chip with most of an array that is split along some dimensions."""
    return max((count for _, count in joint_counts(splits, elements)), default=0)


@lru_cache(maxsize=1 << 16)
def moved_elements(before: tuple[Split, ...], after: tuple[Split, ...], elements: int) -> int:
    """Return how many elements of an array change their chip between two splits along the same dimensions."""
    if before == after:
        return 0
    half = len(before)
    return sum(count for key, count in joint_counts((*before, *after), elements) if key[:half] != key[half:])


@lru_cache(maxsize=1 << 16)
def are_independent(splits: tuple[Split, ...], elements: int) -> bool:
    """Return whether splits along several dimensions leave no chip with more than its part of what others leave.

    Two splits of the same digit along two dimensions are not: they leave elements to chips on a diagonal alone.
    """
    most = elements
    for split in splits:
        part = largest_share((split,), elements)
        most = -(-most * part // elements)
    return largest_share(splits, elements) <= most

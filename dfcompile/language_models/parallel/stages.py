"""Layers in stages: every stage a run of layers, the slowest one as fast as possible."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


def balanced(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """Return where stages end, so that the largest sum of a run of costs is least; no stage is empty.

    The largest sum is searched among all sums of runs that halving leaves; ends are as late as it allows.
    """
    sums = [0.0, *accumulate(costs)]
    low, high = max(costs), sums[-1]
    for _ in range(100):
        middle = (low + high) / 2
        if low >= high or middle in (low, high):
            break
        is_enough = _ends(sums, stages, middle)[-1] == len(costs)
        low, high = (low, middle) if is_enough else (middle, high)
    return _ends(sums, stages, high)


def _ends(sums: Sequence[float], stages: int, most: float) -> tuple[int, ...]:
    ends, at, layers = [], 0, len(sums) - 1
    for stage in range(stages):
        left = stages - stage - 1
        end = bisect_right(sums, sums[at] + most * (1 + 1e-12), at + 1) - 1
        at = min(max(end, at + 1), layers - left)
        ends.append(at)
    return tuple(ends)

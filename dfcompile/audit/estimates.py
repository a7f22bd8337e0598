"""What the audit finds of an estimated schedule: its tasks and their work, and between what its cycles can be."""

from typing import NamedTuple

import numpy as np

from dfcompile.audit.paths import Graph
from dfcompile.choosing import Estimate


class Range(NamedTuple):
    """What is known of an estimate without making it.

    Attributes:
        tasks: their number.
        work_cycles: of all tasks.
        least_cycles: that no schedule takes less than: all work shared, or a path of families on all elements.
        most_cycles: that tasks take which are put where an element gets free: all work shared, and then on a path of
            families the longest task of each.
    """

    tasks: int
    work_cycles: int
    least_cycles: int
    most_cycles: int


def range_of(estimate: Estimate, pes: int) -> Range:
    """Return the range of an estimate.

    Args:
        estimate: with its families.
        pes: number of processing elements P.
    """
    tasks = work = begun = longest_together = 0
    least: list[int] = []
    for family in estimate.families:
        members, row = family.tasks.members, family.tasks.row
        rows = members // row
        total = (members - rows) * family.tasks.whole + rows * family.tasks.last
        longest = max(family.tasks.whole, family.tasks.last, 1)
        tasks += members
        work += total
        begun += members * longest
        longest_together += longest + 1  # whoever takes a stream ends a cycle later
        least.append(max(longest, _shared(total, pes)))
    path = _longest_path(estimate, least)
    return Range(tasks, work, max(path, _shared(work, pes)), _shared(begun, pes) + longest_together)


def _longest_path(estimate: Estimate, least: list[int]) -> int:
    """Return when the last family can end if each has all elements: a cycle after a stream, at least."""
    families = estimate.families
    pairs = [(each.number, number) for number, family in enumerate(families) for each in family.producers]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    start, end = [0] * len(families), [0] * len(families)
    for number in Graph(len(families), source, target).order:
        producers = families[number].producers
        ready = (start[each.number] + 1 if each.streams else end[each.number] for each in producers)
        start[number] = max(ready, default=0)
        behind = (end[each.number] + 1 for each in producers if each.streams)
        end[number] = max([start[number] + least[number], *behind])
    return max(end, default=0)


def _shared(work: int, among: int) -> int:
    return -(-work // among)

"""What the audit finds of an estimated schedule: its tasks and their work, and between what its cycles can be."""

from collections import deque
from typing import NamedTuple

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
    producers = [{(each.number, each.streams) for each in family.producers} for family in families]
    missing = [len({number for number, _ in each}) for each in producers]
    consumers: list[list[int]] = [[] for _ in families]
    for number, each in enumerate(producers):
        for producer in {producer for producer, _ in each}:
            consumers[producer].append(number)
    start, end = [0] * len(families), [0] * len(families)
    ready = deque(number for number, count in enumerate(missing) if not count)
    while ready:
        number = ready.popleft()
        streams = [producer for producer, is_stream in producers[number] if is_stream]
        stored = [producer for producer, is_stream in producers[number] if not is_stream]
        start[number] = max([0, *(start[each] + 1 for each in streams), *(end[each] for each in stored)])
        end[number] = max([start[number] + least[number], *(end[each] + 1 for each in streams)])
        for consumer in consumers[number]:
            missing[consumer] -= 1
            if not missing[consumer]:
                ready.append(consumer)
    return max(end, default=0)


def _shared(work: int, among: int) -> int:
    return -(-work // among)

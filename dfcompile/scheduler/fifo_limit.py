"""Schedules whose FIFOs hold no more than a given number of elements."""

from collections.abc import Callable, Iterator

import numpy as np

from dfcompile.options import Fifos
from dfcompile.records import replace
from dfcompile.scheduler.exact_schedule import MOST_ACCESSES, ReplayedSchedule, exact_schedules, replayed_once
from dfcompile.scheduler.fifo.sizes import LIMIT_ROUNDS, cut_capacities, next_through_memory
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.steady_schedule import Plan

_CAPPED_ACCESSES = 2**18  # of a replay with smaller FIFOs, where tasks also wait for the end of one another


def limited_schedules(plan: Plan, steady: Schedule, fifos: Fifos, most: int) -> Iterator[ReplayedSchedule]:
    """Yield schedules of a partition as `exact_schedules` does, each FIFO of at most so many elements.

    Where one needs more, it is made smaller, which may delay tasks or end in a deadlock; and its edge goes through
    memory, which changes when all others run: both are tried, until nothing is too deep. Of FIFOs in flight the last
    schedule ends.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.
        most: elements of a FIFO.

    Raises:
        ReplayTooLargeError: there are too many elements to be looked at one by one.
    """
    for round_number in range(LIMIT_ROUNDS + 1):
        found = list(exact_schedules(plan, steady, fifos))
        deep = np.zeros(plan.dag.edges_count, dtype=np.bool_)
        for each in found:
            over = each.schedule.fifo_capacity > most
            if over.any():
                deep |= over
                yield from _capped(plan, each.schedule, most)
            else:
                yield each
        if not deep.any():
            return
        plan = plan.through_memory(next_through_memory(plan.dag, deep, most, round_number))
        steady = plan.steady()


def limited_steady(plan: Plan, size: Callable[[Schedule], Schedule], most: int) -> Schedule:
    """Return the schedule of a partition with steady times, edges through memory whose FIFOs would need more.

    Args:
        plan: the partition.
        size: gives a schedule its FIFOs.
        most: elements of a FIFO.
    """
    sized = size(plan.steady())
    for round_number in range(LIMIT_ROUNDS + 1):
        deep = sized.fifo_capacity > most
        if not deep.any():
            break
        plan = plan.through_memory(next_through_memory(plan.dag, deep, most, round_number))
        sized = size(plan.steady())
    return sized


def _capped(plan: Plan, schedule: Schedule, most: int) -> Iterator[ReplayedSchedule]:
    """Yield a schedule with all its FIFOs made small enough, where a replay of that is affordable."""
    capped = replace(schedule, fifo_capacity=cut_capacities(schedule.fifo_capacity, most))
    found = replayed_once(plan.dag, capped, MOST_ACCESSES if plan.barrier else _CAPPED_ACCESSES)
    if found is not None:
        yield found

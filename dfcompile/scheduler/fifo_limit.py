"""Schedules whose FIFOs hold no more than what is asked for, if anything is."""

from collections.abc import Iterator

import numpy as np

from dfcompile.options import Fifos
from dfcompile.records import replace
from dfcompile.scheduler.exact_schedule import MOST_ACCESSES, ReplayedSchedule, exact_schedules, replayed_once
from dfcompile.scheduler.fifo.sizes import LIMIT_ROUNDS, cut_capacities, next_through_memory, sizes_asked_for
from dfcompile.scheduler.replayed import replay_of
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.steady_schedule import Plan

_CAPPED_ACCESSES = 2**18  # of a replay with smaller FIFOs, where tasks also wait for the end of one another


def limited_schedules(plan: Plan, steady: Schedule, fifos: Fifos) -> Iterator[ReplayedSchedule]:
    """Yield schedules of a partition as `exact_schedules` does, no FIFO above the limit of the plan, if it has one.

    Where one needs more, it is made smaller, which may delay tasks or end in a deadlock; and its edge goes through
    memory, which changes when all others run: both are tried, until nothing is too deep. Of FIFOs in flight the last
    schedule ends.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.

    Raises:
        ReplayTooLargeError: there are too many elements to be looked at one by one.
    """
    for round_number in range(LIMIT_ROUNDS + 1):
        deep = np.zeros(plan.dag.edges_count, dtype=np.bool_)
        for each in list(exact_schedules(plan, steady, fifos)):
            over = next_through_memory(plan.dag, each.schedule, plan.options, round_number)
            deep |= over
            yield from _capped(plan, each.schedule) if over.any() else [each]
        if not deep.any():
            return
        plan = plan.through_memory(deep)
        steady = plan.steady()


def limited_steady(plan: Plan, steady: Schedule, fifos: Fifos) -> Schedule:
    """Return the schedule of a partition with steady times, edges through memory whose FIFOs would need too much.

    Its times know nothing of its FIFOs.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.
    """
    for round_number in range(LIMIT_ROUNDS + 1):
        sized = replace(steady, fifo_capacity=sizes_asked_for(plan.dag, replay_of(steady), fifos))
        deep = next_through_memory(plan.dag, sized, plan.options, round_number)
        if not deep.any():
            break
        plan = plan.through_memory(deep)
        steady = plan.steady()
    return sized


def _capped(plan: Plan, schedule: Schedule) -> Iterator[ReplayedSchedule]:
    """Yield a schedule with all its FIFOs made small enough, where a replay of that is affordable."""
    capped = replace(schedule, fifo_capacity=cut_capacities(schedule, plan.options))
    found = replayed_once(plan.dag, capped, MOST_ACCESSES if plan.barrier else _CAPPED_ACCESSES)
    if found is not None:
        yield found

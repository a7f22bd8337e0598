"""Schedules of which none is both shorter and of smaller FIFOs: what there is to decide between.

Short schedules without barriers let tasks run far ahead of their consumers, and hold what these have not read: often a
hundred times the FIFOs for the last thousandth of the makespan.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.options import DEFAULT_SLACK, Effort, Objective
from dfcompile.records import replace
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.exact_schedule import is_replayable
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import collect_partitioners, find_partitioner

# Most elements of a FIFO, tried in turn where the schedule before has a larger one.
_LIMITS = {Effort.QUICK: (16,), Effort.DEFAULT: (256, 16, 1), Effort.HIGH: (1024, 256, 64, 16, 4, 1)}
_MINIMAL_ACCESSES = 2**18  # of a replay: the smallest FIFOs take hundreds of them


class Tried(Struct, frozen=True, eq=False):
    """A schedule and what it was asked for with.

    Attributes:
        options: of the schedule; with barriers or without, never left open.
        found: the schedule, accepted by the checker.
    """

    options: ScheduleOptions
    found: CheckedSchedule

    @property
    def cost(self) -> tuple[int, int]:
        """Makespan and elements of all FIFOs; only of a schedule that ends."""
        makespan = self.found.figures.makespan_cycles
        return -1 if makespan is None else makespan, self.found.figures.fifo_elements


class Selection(Struct, frozen=True):
    """What is chosen of the schedules that are found.

    Attributes:
        objective: of one schedule.
        slack: with the objective ``fifo``, by what part a schedule may be longer than the shortest.
        front: whether all schedules that no other one beats are taken instead.
    """

    objective: Objective
    slack: Fraction = DEFAULT_SLACK
    front: bool = False


SHORTEST: Final = Selection(Objective.MAKESPAN)


def grouped(choices: Sequence[ScheduleOptions], selection: Selection) -> tuple[tuple[ScheduleOptions, ...], ...]:
    """Return the options of which one selection is made: for a front all of one number of processing elements."""
    if not selection.front:
        return tuple((options,) for options in choices)
    counts = dict.fromkeys(options.pes for options in choices)
    return tuple(tuple(options for options in choices if options.pes == pes) for pes in counts)


def selected(scheduling: Scheduling, asked: Sequence[ScheduleOptions], selection: Selection) -> tuple[Tried, ...]:
    """Return what is selected of the schedules that options give.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
        InfeasibleError: there is a choice, but all schedules tried end in a deadlock.
    """
    if selection.objective is Objective.MAKESPAN and not selection.front:
        return tuple(Tried(options, scheduling.on(options)) for options in asked)
    front = find_front(scheduling, asked)
    if not front:
        raise InfeasibleError(
            f"schedule of {scheduling.dag.name!r} on {asked[0].pes} processing elements: all schedules tried end in a "
            f"deadlock with fifos of {asked[0].fifos} elements (larger ones, or none said)"
        )
    return front if selection.front else (leanest(front, selection.slack),)


def options_text(options: ScheduleOptions) -> str:
    """Return the options of ``dfcompile schedule`` that give a schedule; with barriers or without is said."""
    words = ["--partition", options.partition, "--barrier" if options.barrier else "--no-barrier"]
    if options.max_fifo is not None:
        words += ["--max-fifo", str(options.max_fifo)]
    if options.fifos is not None:
        words += ["--fifo", str(options.fifos)]
    return " ".join(words)


def find_front(scheduling: Scheduling, options: Iterable[ScheduleOptions]) -> tuple[Tried, ...]:
    """Return the schedules tried that no other one beats or equals in both, the shortest first.

    Tried are the partitioners asked for and those they are compared with anyway, each with barriers and without unless
    one of these is asked for, with FIFOs as large as they get and with several limits; with barriers also the smallest
    FIFOs that cost no time, if none are asked for. Where some schedules have the times of a replay, those that have not
    do not count. Empty if all end in a deadlock.

    Args:
        scheduling: of the graph.
        options: what was asked for: of one number of processing elements.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
    """
    front = _not_beaten([one for asked in options for one in _tried(scheduling, asked)])
    return _not_beaten([*front, *_smallest(scheduling, front)])


def leanest(front: Sequence[Tried], slack: Fraction) -> Tried:
    """Return the schedule with the fewest FIFO elements among those that take little more than the shortest.

    Args:
        front: not empty.
        slack: by what part of its makespan.
    """
    longest = front[0].cost[0] * (1 + slack)
    return min((one for one in front if one.cost[0] <= longest), key=lambda one: one.cost[::-1])


def _tried(scheduling: Scheduling, asked: ScheduleOptions) -> Iterator[Tried]:
    """Yield schedules of a partitioner and of those it is compared with, each with ever smaller FIFOs."""
    partitioner = find_partitioner(asked.partition, collect_partitioners())
    for name in dict.fromkeys((asked.partition, *(rival.name for rival in partitioner.rivals))):
        for barrier in (False, True) if asked.barrier is None else (asked.barrier,):
            yield from _limited(scheduling, replace(asked, partition=name, barrier=barrier))


def _limited(scheduling: Scheduling, options: ScheduleOptions) -> Iterator[Tried]:
    """Yield schedules with ever smaller FIFOs, if they are not of one given size."""
    one = Tried(options, scheduling.on(options))
    yield one
    for limit in () if isinstance(options.fifos, int) else _LIMITS[options.effort]:
        if limit < int(one.found.schedule.fifo_capacity.max(initial=0)):
            limited = replace(options, max_fifo=limit)
            one = Tried(limited, scheduling.on(limited))
            yield one


def _smallest(scheduling: Scheduling, front: Iterable[Tried]) -> Iterator[Tried]:
    for one in front:
        made, options = one.found.schedule, replace(one.options, fifos="minimal")
        is_searched = one.options.fifos is None and made.barrier and made.timing.is_exact
        if is_searched and is_replayable(scheduling.dag, made, _MINIMAL_ACCESSES):
            yield Tried(options, scheduling.on(options))


def _not_beaten(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """Return the schedules that end and that no other one beats, nor an earlier one equals; the shortest first."""
    ending = [one for one in tried if one.found.figures.makespan_cycles is not None]
    exact = [one for one in ending if one.found.figures.is_exact]
    front: list[Tried] = []
    for one in sorted(exact or ending, key=lambda one: one.cost):
        if not front or one.cost[1] < front[-1].cost[1]:
            front.append(one)
    return tuple(front)

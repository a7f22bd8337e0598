"""Repetition: a schedule again and again on inputs of their own, iterations beside each other on the same machine.

Every iteration has the times of the schedule, moved by a whole number of initiation intervals, and its own FIFOs and
buffers. Tasks are given processing elements anew: at any time as many elements are busy as tasks of all iterations are
under way, and intervals of which never more than P overlap fit on P elements, whoever takes the next free one.
"""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.errors import UserError, VerificationError
from dfcompile.records import replace
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import Schedule

_GROWTH = 1.02  # from one interval that is tried to the next
_HALVINGS = 12  # of what is between the first that fits and the one before


class Repetition(Struct, frozen=True):
    """A schedule that is repeated.

    Attributes:
        repeats: number of iterations.
        interval_cycles: from the start of one iteration to that of the next.
        makespan_cycles: until the last iteration has ended.
        in_flight: iterations that are under way at once, at most: so often there are buffers.
        least_interval_cycles: that no repetition of this schedule falls below: all elements are busy then.
        pes: number of processing elements P of all iterations together.
        schedule: of one iteration.
    """

    repeats: int
    interval_cycles: int
    makespan_cycles: int
    in_flight: int
    least_interval_cycles: int
    pes: int
    schedule: Schedule


def best_repetition(scheduling: Scheduling, options: ScheduleOptions, repeats: int) -> Repetition:
    """Return the repetition of least makespan, and of these with fewest iterations at once.

    One iteration is scheduled on all P elements, on half of them, on a quarter and so on: on fewer it takes longer,
    but has them busy for more of its time.

    Raises:
        UserError: the times of a schedule are not exact, or no partitioner has the name.
        VerificationError: a checker rejects a schedule or its repetition.
    """
    counts = [options.pes >> halvings for halvings in range(options.pes.bit_length())]
    schedules = (scheduling.on(replace(options, pes=pes)).schedule for pes in counts)
    found = [repeated(scheduling.dag, schedule, repeats, options.pes) for schedule in schedules]
    return min(found, key=lambda one: (one.makespan_cycles, one.in_flight))


def repeated(dag: CanonicalDag, schedule: Schedule, repeats: int, pes: int) -> Repetition:
    """Return a schedule repeated with an initiation interval as short as one that is found, accepted by the check.

    The intervals that fit are not all above a shortest one, so that a shorter one may exist.

    Args:
        dag: the graph.
        schedule: of it, with exact times.
        repeats: number of iterations, at least 1.
        pes: number of processing elements P, at least those of the schedule.

    Raises:
        UserError: the times of the schedule are not exact.
        VerificationError: more tasks are under way at once than there are processing elements.
    """
    if not schedule.timing.is_exact:
        raise UserError("repeat: found steady times against exact ones (--timing exact)")
    if not schedule.makespan_cycles:
        return Repetition(repeats, 0, 0, 1, 0, pes, schedule)
    start, end = _busy(dag, schedule)
    least = max(1, -(-int((end - start).sum()) // pes))
    makespan = schedule.makespan_cycles
    interval = _interval(start, end, pes, least, makespan)
    in_flight = min(repeats, -(-makespan // interval))
    found = Repetition(repeats, interval, makespan + (repeats - 1) * interval, in_flight, least, pes, schedule)
    check_repetition(dag, schedule, found)
    return found


def check_repetition(dag: CanonicalDag, schedule: Schedule, repetition: Repetition) -> None:
    """Check iteration beside iteration, written out, that no more tasks are under way than there are elements.

    After as many iterations as are under way at once the same is repeated, so twice that number is looked at.

    Raises:
        VerificationError: there are more, or the makespan is another one.
    """
    start, end = _busy(dag, schedule)
    interval, looked_at = repetition.interval_cycles, min(repetition.repeats, 2 * repetition.in_flight)
    moved = interval * np.arange(looked_at, dtype=np.int64)[:, None]
    most = _most_at_once((start + moved).ravel(), (end + moved).ravel())
    if most > repetition.pes:
        raise VerificationError(f"repetition: {most} tasks at once against {repetition.pes} processing elements")
    last = schedule.makespan_cycles + (repetition.repeats - 1) * interval
    if repetition.makespan_cycles != last:
        raise VerificationError(f"repetition: makespan {repetition.makespan_cycles} against {last}")


def _interval(start: Int64, end: Int64, pes: int, least: int, whole: int) -> int:
    """Return an interval that fits: intervals are tried from the least one on, each 2 % longer; then between two."""
    before, found = least - 1, min(least, whole)
    while found < whole and not _fits(start, end, pes, found):
        before, found = found, min(whole, max(found + 1, int(found * _GROWTH)))
    for _ in range(_HALVINGS):
        middle = (before + found) // 2
        if middle in (before, found):
            break
        if _fits(start, end, pes, middle):
            found = middle
        else:
            before = middle
    return found


def _fits(start: Int64, end: Int64, pes: int, interval: int) -> bool:
    """Return whether endless iterations need no more elements: times are folded into one interval."""
    length = end - start
    always = int((length // interval).sum())  # a task of which several iterations are under way all the time
    first = start % interval
    last = first + length % interval
    wraps = last > interval
    starts = np.concatenate([first, np.zeros(int(wraps.sum()), dtype=np.int64)])
    ends = np.concatenate([np.minimum(last, interval), last[wraps] - interval])
    return always + _most_at_once(starts, ends) <= pes


def _most_at_once(start: Int64, end: Int64) -> int:
    """Return how many intervals, without their ends, have a cycle in common at most."""
    some = end > start
    starts, ends = np.sort(start[some]), np.sort(end[some])
    return int((np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")).max(initial=0))


def _busy(dag: CanonicalDag, schedule: Schedule) -> tuple[Int64, Int64]:
    """Return from when to when each task has its processing element."""
    tasks = dag.is_computational
    return schedule.start[tasks], schedule.last_out[tasks]

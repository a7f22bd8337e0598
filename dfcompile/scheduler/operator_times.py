"""What becomes of the processing elements during a schedule, operator by operator."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.distinct import distinct
from dfcompile.scheduler.schedules import Schedule

_BITS = 62  # of numbers that are exact


class OperatorTime(Struct, frozen=True):
    """What one of the user's operators takes of all processing elements, in cycles of single elements.

    Attributes:
        origin: the user's operator.
        work_cycles: of its tasks.
        waiting_cycles: in which a task of it has an element, and waits.
        idle_cycles: in which an element has no task; tasks that run meanwhile share it.
    """

    origin: str
    work_cycles: int
    waiting_cycles: int
    idle_cycles: int


def operator_times(dag: CanonicalDag, schedule: Schedule) -> tuple[OperatorTime, ...]:
    """Return the times of all operators, in the order of their first tasks.

    Together they are ``P * makespan``.

    Args:
        dag: the graph.
        schedule: of it, with the times of a replay.
    """
    tasks = np.flatnonzero(dag.is_computational)
    numbers: dict[str, int] = {}
    of_scope = [numbers.setdefault(scope.origin, len(numbers)) for scope in dag.scopes]
    operator = np.array(of_scope, dtype=np.int64)[dag.node_scope[tasks]]
    start, end = schedule.start[tasks], schedule.last_out[tasks]
    work, held = np.zeros((2, len(numbers)), dtype=np.int64)
    np.add.at(work, operator, dag.work[tasks])
    np.add.at(held, operator, end - start)
    idle = schedule.pes * schedule.makespan_cycles - int(held.sum())
    shares = shared(idle, _idle_parts(start, end, operator, schedule, len(numbers)))
    found = (
        OperatorTime(origin, int(work[number]), int(held[number] - work[number]), shares[number])
        for origin, number in numbers.items()
    )
    present = set(operator.tolist())
    return tuple(each for number, each in enumerate(found) if number in present)


def _idle_parts(start: Int64, end: Int64, operator: Int64, schedule: Schedule, operators: int) -> list[int]:
    """Return how idle elements are shared: between two events, each task that runs gets the same of them.

    What is idle while nothing runs counts for what runs next.
    """
    events = distinct(np.concatenate([[0, schedule.makespan_cycles], start, end]))
    begins, ends = np.searchsorted(events, start), np.searchsorted(events, end)
    running = np.zeros(len(events), dtype=np.int64)
    np.add.at(running, begins, 1)
    np.add.at(running, ends, -1)
    running = np.cumsum(running)[:-1]
    idle = (schedule.pes - running) * np.diff(events)
    for step in np.flatnonzero(running[:-1] == 0).tolist():
        idle[step + 1] += idle[step]
    most = max(schedule.pes * schedule.makespan_cycles, 1)
    scale = 1 << max(_BITS - most.bit_length(), 0)
    each = np.concatenate([[0], np.cumsum(idle * scale // np.maximum(running, 1) * (running > 0))])
    parts = np.zeros(operators, dtype=np.int64)
    np.add.at(parts, operator, each[ends] - each[begins])
    return [int(part) for part in parts]


def shared(total: int, parts: Sequence[int]) -> list[int]:
    """Share a number in proportion to parts, in whole numbers that add up to it.

    >>> shared(10, [1, 1, 1])
    [3, 4, 3]
    """
    shares, before, given, whole = list[int](), 0, 0, max(sum(parts), 1)
    for part in parts:
        before += part
        until = (2 * total * before + whole) // (2 * whole)
        shares.append(until - given)
        given = until
    return shares

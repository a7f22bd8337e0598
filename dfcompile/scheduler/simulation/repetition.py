"""When a stretch repeats the one before it, how often it will go on doing so."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import StreamingUnit, Stretch


class Repetition(Struct, frozen=True):
    """How the stretches that follow one repeat it.

    Attributes:
        count: how many of them do: each is as many cycles later as the stretch itself lasts at the same task.
        young: edges whose FIFO has not had ``capacity`` reads that repeat: none of its places will be awaited in
            these stretches.
    """

    count: int
    young: tuple[int, ...]


NO_REPETITION = Repetition(0, ())


def find_repetition(
    unit: StreamingUnit, before: Stretch | None, stretch: Stretch, ends: list[int], most: int
) -> Repetition:
    """Return how often a stretch will be repeated, at most ``most`` times.

    If all accesses of a task are later by the same time than in the stretch before, by what the stretch lasts at that
    task, then so they are in the next stretch, until an access would overtake one that it must wait for. That can only
    happen where the slower of two neighbours is awaited by the faster one: an access that waited for the slower one
    would be as slow, so none does yet, and the shortest distance tells for how long.
    """
    if before is None or most < 1:
        return NO_REPETITION
    cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
    count = most
    young = []
    for edge in range(len(unit.edges)):
        writing, reading = cycles[unit.source[edge]], cycles[unit.target[edge]]
        if not _later_by(stretch.puts(edge), before.puts(edge), writing):
            return NO_REPETITION
        if not _later_by(stretch.reads(edge), before.reads(edge), reading):
            return NO_REPETITION
        if stretch.past[edge]:
            if _later_by(stretch.gets[edge], before.gets[edge], reading):
                count = min(count, _lasting(stretch.frees(edge), reading, stretch.puts(edge), writing, most))
            else:
                young.append(edge)
                count = min(count, _lasting_while_young(stretch, edge, writing))
        count = min(count, _lasting(stretch.puts(edge), writing, stretch.reads(edge), reading, most))
    return Repetition(count, tuple(young)) if count > 0 else NO_REPETITION


def find_period(edges: int, stretch: Stretch, rounds: int) -> int:
    """Return after how many rounds the times in the second half of a stretch repeat; 1 if they do not."""
    puts = [stretch.puts(edge) for edge in range(edges)]
    first_puts = np.stack([times[:: len(times) // rounds] for times in puts], axis=1)
    gaps = np.diff(first_puts, axis=0)[rounds // 2 :]  # [rounds - 1 - rounds // 2][edges]
    if len(gaps) < 2:
        return 1
    alike = np.flatnonzero((gaps[:-1] == gaps[-1]).all(axis=1))
    periods: list[int] = (len(gaps) - 1 - alike[::-1]).tolist()
    return next((period for period in periods if np.array_equal(gaps[period:], gaps[:-period])), 1)


def _later_by(times: Int64, earlier: Int64, cycles: int) -> bool:
    return int(times[-1]) - int(earlier[-1]) == cycles and bool((times - earlier == cycles).all())


def _lasting(awaited: Int64, awaited_cycles: int, access: Int64, cycles: int, most: int) -> int:
    """How often an access can be repeated before it overtakes the one that it waits for."""
    if awaited_cycles <= cycles:
        return most
    return int((access - awaited).min()) // (awaited_cycles - cycles)


def _lasting_while_young(stretch: Stretch, edge: int, writing: int) -> int:
    """How often a write can be repeated while the places that it takes are those freed up to this stretch.

    All of those are free before the next stretch begins at the writer, so whatever their times, none is awaited.
    """
    puts = stretch.puts(edge)
    nothing_awaited = bool((stretch.frees(edge) < puts).all())
    if nothing_awaited and int(stretch.reads(edge)[-1]) <= int(puts[0]) + writing:
        return stretch.past[edge] // len(puts)
    return 0

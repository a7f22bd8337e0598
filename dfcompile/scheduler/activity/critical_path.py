"""The chain of waits that makes a makespan: who had to go on for the last task to end."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.activity.following import Following
from dfcompile.scheduler.simulation.occupancy import Accesses, accesses_of_task
from dfcompile.scheduler.simulation.stretch import Stretch

_MOST_LINKS = 2**17  # waits for single elements that are gone back over: about a second


class Stay(Struct, frozen=True):
    """A stretch of the chain during which one task is what everything waits for.

    Attributes:
        node: the task.
        begin: cycle in which its own wait ended.
        end: cycle in which the next one of the chain could go on.
    """

    node: int
    begin: int
    end: int


def critical_path(following: Following) -> tuple[Stay, ...]:
    """Return the chain from the end of the makespan back, stays of no time left out.

    From the end of the last task it goes back to that task's latest wait; then to the task that ended this wait, at
    that access, and so on; before its first access a task waits for its release, which is the end of another one. Where
    units are too large to be followed a whole task stays, and the chain goes on with its release. Beyond some 100,000
    links it ends early.
    """
    return tuple(_Chain(following).stays())


class _Chain:
    def __init__(self, following: Following) -> None:
        self._following = following
        self._tasks = following.dag.nodes_count
        self._unit: tuple[int, Stretch] | None = None
        self._accesses: dict[int, tuple[Accesses, Int64]] = {}  # of the unit, with the places of those that waited
        self._stays: list[Stay] = []

    def stays(self) -> list[Stay]:
        end = self._following.end
        node, place = max(range(len(end)), key=lambda number: (end[number], -number), default=0), -1
        now = end[node] if end else 0
        for _ in range(_MOST_LINKS):
            if now <= 0:
                break
            node, place, now = self._before(node, place, now)
        return self._stays

    def _before(self, node: int, place: int, now: int) -> tuple[int, int, int]:
        """Go back from an access of a node (-1: its end) to the access of the one it waited for."""
        following = self._following
        number = following.unit_of.get(node)
        if number is None or not following.is_followed(number):
            return self._released(node, following.release[node], now)
        stretch = self._followed(number)
        unit = stretch.unit
        local = unit.nodes.index(node)
        accesses, waited = self._accesses_of(stretch, local)
        last = len(waited) if place < 0 else int(np.searchsorted(waited, place, side="right"))
        if not last:
            return self._released(node, stretch.clock[local], now)
        at = waited[last - 1]
        time, edge = int(accesses.time[at]), int(accesses.edge[at])
        row = int(np.searchsorted(accesses.places[edge], at))
        self._stay(node, time, now)
        if unit.target[edge] == local:
            other = unit.source[edge]
        else:
            other, row = unit.target[edge], row - unit.capacity[edge]
        return unit.nodes[other], int(self._accesses_of(stretch, other)[0].places[edge][row]), time

    def _released(self, node: int, release: int, now: int) -> tuple[int, int, int]:
        """Go back over a node from its beginning to the one whose end it waited for."""
        self._stay(node, release, now)
        following = self._following
        number = following.unit_of.get(node)
        waits = list(following.plan.waits[node])
        if number is not None:
            unit = following.units[number]
            waits += [unit.nodes[other] for other in unit.waits[unit.nodes.index(node)]]
        ended = [other for other in waits if following.end[other] == release]
        if not ended and release > 0:  # kept waiting by another configuration
            ended = [other for other in range(self._tasks) if following.end[other] == release]
        return (ended[0], -1, release) if ended else (node, -1, 0)

    def _stay(self, node: int, begin: int, end: int) -> None:
        if begin < end and node < self._tasks:
            self._stays.append(Stay(node, begin, end))

    def _followed(self, number: int) -> Stretch:
        if self._unit is None or self._unit[0] != number:
            self._unit = number, self._following.followed(number)
            self._accesses = {}
        return self._unit[1]

    def _accesses_of(self, stretch: Stretch, node: int) -> tuple[Accesses, Int64]:
        if node not in self._accesses:
            accesses = accesses_of_task(stretch, node)
            self._accesses[node] = accesses, np.flatnonzero(accesses.wait > 0)
        return self._accesses[node]

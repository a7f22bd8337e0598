"""The chain of waits that makes a makespan: who had to go on for the last task to end."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.activity.following import Following
from dfcompile.scheduler.simulation.accesses import FollowedUnit

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
        self._unit: tuple[int, FollowedUnit] | None = None
        self._waits: dict[int, tuple[Int64, Int64]] = {}
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
        unit = self._followed(number)
        local = unit.unit.nodes.index(node)
        time, edge, row, at = self._latest_wait(unit, local, place)
        if at < 0:
            return self._released(node, unit.stretch.clock[local], now)
        self._stay(node, time, now)
        if unit.unit.target[edge] == local:
            other, place = unit.unit.source[edge], unit.place_of_write(edge, row)
        else:
            read = row - unit.unit.capacity[edge]
            other, place = unit.unit.target[edge], unit.place_of_read(edge, read)
        return unit.unit.nodes[other], place, time

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
        if begin >= end or node >= self._tasks:
            return
        self._stays.append(Stay(node, begin, end))

    def _followed(self, number: int) -> FollowedUnit:
        if self._unit is None or self._unit[0] != number:
            self._unit = number, self._following.followed(number)
            self._waits = {}
        return self._unit[1]

    def _latest_wait(self, unit: FollowedUnit, node: int, place: int) -> tuple[int, int, int, int]:
        """Return time, edge, row and place of the last access up to one that waited; place -1 if there is none."""
        accesses = self._accesses(unit, node)
        waited = accesses[1]
        last = len(waited) if place < 0 else int(np.searchsorted(waited, place, side="right"))
        if not last:
            return 0, 0, 0, -1
        at = int(waited[last - 1])
        time, edge, row = accesses[0][:, at].tolist()
        return time, edge, row, at

    def _accesses(self, unit: FollowedUnit, node: int) -> tuple[Int64, Int64]:
        if node not in self._waits:
            found = unit.accesses(node)
            self._waits[node] = np.stack([found.time, found.edge, found.row]), np.flatnonzero(found.wait > 0)
        return self._waits[node]

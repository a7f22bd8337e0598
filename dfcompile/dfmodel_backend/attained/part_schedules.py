"""Schedules of parts of a lowering; parts of one shape, such as equal layers, have the same."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import ReplayTooLargeError
from dfcompile.records import replace
from dfcompile.scheduler import Partitioner, Schedule, ScheduleOptions, collect_partitioners, schedule
from dfcompile.scheduler.simulation.simulator import replayed

_Key = tuple[bytes, ScheduleOptions]

_SCHEDULED_BOTH_WAYS = 10_000  # nodes; of more, another way is looked for where it may help
_REPLAYED_BOTH_WAYS = 100_000  # nodes; of more, where it is planned already, too


@dataclass(frozen=True)
class PartSchedules:
    """The schedules of parts, found once.

    Attributes:
        scheduling: how parts are scheduled.
        planning: how they are scheduled while configurations are compared.
    """

    scheduling: ScheduleOptions
    planning: ScheduleOptions
    _planned: dict[_Key, Schedule] = field(default_factory=dict, repr=False)
    _replayed: dict[_Key, Schedule] = field(default_factory=dict, repr=False)

    def put(self, dag: CanonicalDag, found: Schedule) -> None:
        """Take a replayed schedule of a DAG for what `scheduling` gives."""
        key = _shape(dag), self.scheduling
        self._planned[key] = self._replayed[key] = found

    @cached_property
    def _partitioners(self) -> Mapping[str, Partitioner]:
        return collect_partitioners()

    def planned(self, part: CanonicalDag, fits: Callable[[Schedule], bool]) -> Schedule | None:
        """Return a schedule with the times that were planned, or None if no FIFOs fit.

        Where FIFOs do not fit, streams whose FIFO would hold nearly all of them go through memory instead.

        Args:
            part: of the lowering.
            fits: whether there is room for the FIFOs of a schedule.
        """
        shape = _shape(part)
        for options in _with_smaller_fifos(self.planning):
            if fits(found := self._plan(part, (shape, options))):
                return found
        return None

    def replayed(
        self,
        part: CanonicalDag,
        fits: Callable[[Schedule], bool],
        may_help: Callable[[Schedule | None], bool] = lambda _: True,
    ) -> Iterator[Schedule]:
        """Yield schedules with the times of their replay: as planned, and as asked for where that is another way.

        Of all but small parts, what is known comes first, and the other way only where it may help; of large parts
        only if it is planned already, or no FIFOs of the first fit. What is too large to be replayed is passed over
        where another way is not.

        Args:
            part: of the lowering.
            fits: whether there is room for the FIFOs of a schedule.
            may_help: asked once the first was yielded, of all but small parts: whether a schedule with the times that
                are planned may be of use; of none where nothing is planned yet.

        Raises:
            ReplayTooLargeError: the replays of all that fit are too large.
        """
        shape, is_found, too_large = _shape(part), False, None
        for asked in self._ways(shape, part, fits):
            for options in _with_smaller_fifos(asked):
                key = shape, options
                if is_found and not self._is_worth_it(part, key, fits, may_help):
                    continue
                if not fits(found := self._plan(part, key)):
                    continue
                try:
                    timed = self._replay(part, found, key)
                except ReplayTooLargeError as error:
                    too_large = error
                    continue
                is_found = True
                yield timed
                break
        if too_large is not None and not is_found:
            raise too_large

    def _ways(self, shape: bytes, part: CanonicalDag, fits: Callable[[Schedule], bool]) -> Iterable[ScheduleOptions]:
        known = self._replayed.get((shape, self.scheduling))
        is_first = known is not None and part.nodes_count > _SCHEDULED_BOTH_WAYS and fits(known)
        ways = (self.scheduling, self.planning) if is_first else (self.planning, self.scheduling)
        return dict.fromkeys(ways)

    def _is_worth_it(
        self,
        part: CanonicalDag,
        key: _Key,
        fits: Callable[[Schedule], bool],
        may_help: Callable[[Schedule | None], bool],
    ) -> bool:
        """Return whether a second schedule of a part is looked for."""
        if part.nodes_count <= _SCHEDULED_BOTH_WAYS or key in self._replayed:
            return True
        planned = self._planned.get(key)
        if planned is None and part.nodes_count > _REPLAYED_BOTH_WAYS:
            return False
        return (planned is None or fits(planned)) and may_help(planned)

    def _replay(self, part: CanonicalDag, found: Schedule, key: _Key) -> Schedule:
        if key not in self._replayed:
            self._replayed[key] = replayed(part, found)
        return self._replayed[key]

    def _plan(self, part: CanonicalDag, key: _Key) -> Schedule:
        if key not in self._planned:
            self._planned[key] = schedule(part, key[1], self._partitioners)
        return self._planned[key]


def _with_smaller_fifos(options: ScheduleOptions) -> tuple[ScheduleOptions, ...]:
    return options, replace(options, demote=True)


def _shape(part: CanonicalDag) -> bytes:
    """Return what a schedule of a part depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for column in (part.kind, part.edge_source, part.edge_target, part.edge_volume):
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.digest()

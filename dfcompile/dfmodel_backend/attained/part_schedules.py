"""Schedules of parts of a lowering; parts of one shape, such as equal layers, have the same."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import ReplayTooLargeError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import Partitioner, Schedule, ScheduleOptions, collect_partitioners, schedule
from dfcompile.scheduler.baseline import postponed, schedule_non_streaming
from dfcompile.scheduler.listing.list_schedule import through_memory
from dfcompile.scheduler.simulation.simulator import replayed

_Key = tuple[bytes, ScheduleOptions | None]  # without options: nothing streams

_SCHEDULED_BOTH_WAYS = 10_000  # nodes; of more, another way is looked for where it may help
_SMALLER_FIFOS = (64, 4, 1)  # elements, where those of lists do not fit
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

    def nothing_streams(self, part: CanonicalDag) -> Schedule:
        """Return the schedule of a part in which all data goes through memory."""
        return self._plan(part, (_shape(part), None))

    def with_small_fifos(self, part: CanonicalDag, fits: Callable[[Schedule], bool]) -> Iterator[Schedule]:
        """Yield replayed list schedules of a part that has one, with smaller and smaller FIFOs."""
        shape = _shape(part)
        for options in self._small_fifos(shape, self.scheduling):
            timed = self._replayed_if_it_fits(part, (shape, options), fits)
            if timed is not None:
                yield timed

    def planned(self, part: CanonicalDag, fits: Callable[[Schedule], bool]) -> Iterator[Schedule]:
        """Yield schedules with the times that were planned: one in which nothing streams, and one that does if it fits.

        Where FIFOs do not fit, streams whose FIFO would hold nearly all of them go through memory instead.

        Args:
            part: of the lowering.
            fits: whether there is room for the FIFOs of a schedule.
        """
        shape = _shape(part)
        yield self._plan(part, (shape, None))
        for options in self._with_smaller_fifos(shape, self.planning, part.nodes_count):
            if fits(found := self._plan(part, (shape, options))):
                yield found
                return

    def replayed(
        self,
        part: CanonicalDag,
        fits: Callable[[Schedule], bool],
        may_help: Callable[[Schedule | None], bool] = lambda _: True,
    ) -> Iterator[Schedule]:
        """Yield schedules with the times of their replay: as planned, and as asked for where that is another way.

        Of all but small parts, what is known comes first, and the other way only where it may help; of large parts
        only if it is planned already, or no FIFOs of the first fit. What is too large to be replayed is passed over:
        last comes the schedule in which nothing streams, if it may help or nothing else came.

        Args:
            part: of the lowering.
            fits: whether there is room for the FIFOs of a schedule.
            may_help: asked once the first was yielded, of all but small parts: whether a schedule with the times that
                are planned may be of use; of none where nothing is planned yet.
        """
        shape, is_found = _shape(part), False
        for asked in self._ways(shape, part, fits):
            for options in self._with_smaller_fifos(shape, asked, part.nodes_count):
                key = shape, options
                if is_found and not self._is_worth_it(part, key, fits, may_help):
                    continue
                timed = self._replayed_if_it_fits(part, key, fits)
                if timed is not None:
                    is_found = True
                    yield timed
                    break

    def _replayed_if_it_fits(self, part: CanonicalDag, key: _Key, fits: Callable[[Schedule], bool]) -> Schedule | None:
        """Return a schedule with the times of its replay; ``None`` if its FIFOs do not fit, or that is too large."""
        if not fits(found := self._plan(part, key)):
            return None
        try:
            return self._replay(part, found, key)
        except ReplayTooLargeError:
            return None

    def _ways(
        self, shape: bytes, part: CanonicalDag, fits: Callable[[Schedule], bool]
    ) -> Iterable[ScheduleOptions | None]:
        known = self._replayed.get((shape, self.scheduling))
        is_first = known is not None and part.nodes_count > _SCHEDULED_BOTH_WAYS and fits(known)
        ways = (self.scheduling, self.planning) if is_first else (self.planning, self.scheduling)
        return (*dict.fromkeys(ways), None)

    def _with_smaller_fifos(
        self, shape: bytes, options: ScheduleOptions | None, nodes: int
    ) -> Iterator[ScheduleOptions | None]:
        """Yield options, then what is tried where its FIFOs do not fit."""
        yield options
        if options is None:
            return
        if nodes <= _SCHEDULED_BOTH_WAYS:
            yield from self._small_fifos(shape, options)
        yield replace(options, demote=True)

    def _small_fifos(self, shape: bytes, options: ScheduleOptions) -> Iterator[ScheduleOptions]:
        """Yield options with smaller and smaller FIFOs, if they are what a known schedule was made with."""
        if (shape, self.scheduling) in self._replayed and options == self.scheduling and options.max_fifo is None:
            yield from (replace(options, timing=Timing.EXACT, max_fifo=most) for most in _SMALLER_FIFOS)

    def _is_worth_it(
        self,
        part: CanonicalDag,
        key: _Key,
        fits: Callable[[Schedule], bool],
        may_help: Callable[[Schedule | None], bool],
    ) -> bool:
        """Return whether another schedule of a part is looked for."""
        if key[1] is None:
            return may_help(self._plan(part, key))
        if part.nodes_count <= _SCHEDULED_BOTH_WAYS or key in self._replayed:
            return True
        planned = self._planned.get(key)
        if planned is None and part.nodes_count > _REPLAYED_BOTH_WAYS:
            return False
        return (planned is None or fits(planned)) and may_help(planned)

    def _replay(self, part: CanonicalDag, found: Schedule, key: _Key) -> Schedule:
        if key[1] is None:  # every task begins when all that it reads is there: nothing is early or late
            return replace(found, timing=Timing.EXACT)
        if key not in self._replayed:
            self._replayed[key] = replayed(part, found)
        return self._replayed[key]

    def _plan(self, part: CanonicalDag, key: _Key) -> Schedule:
        if key not in self._planned:
            options = key[1]
            if options is None:
                alone = schedule_non_streaming(part, self.planning.pes)
                found = through_memory(part, self.planning, postponed(part, alone))
            else:
                found = schedule(part, options, self._partitioners)
            self._planned[key] = found
        return self._planned[key]


def _shape(part: CanonicalDag) -> bytes:
    """Return what a schedule of a part depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for column in (part.kind, part.edge_source, part.edge_target, part.edge_volume):
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.digest()

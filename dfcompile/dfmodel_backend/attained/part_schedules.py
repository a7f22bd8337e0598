"""Schedules of parts of a lowering; parts of one shape, such as equal layers, have the same."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_MEMBER, CanonicalDag
from dfcompile.errors import ReplayTooLargeError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import (
    NonStreamingSchedule,
    Partitioner,
    Schedule,
    ScheduleOptions,
    collect_partitioners,
    schedule,
)
from dfcompile.scheduler.baseline import postponed, schedule_non_streaming
from dfcompile.scheduler.depth_first import schedule_depth_first
from dfcompile.scheduler.listing.list_schedule import through_memory
from dfcompile.scheduler.simulation.simulator import replayed


@unique
class Order(Enum):
    """In which order tasks are taken where nothing streams."""

    BY_RANK = "by rank"
    DEPTH_FIRST = "depth first"


class NothingStreams(Struct, frozen=True):
    """A way to schedule without streams."""

    order: Order
    pes: int


_NON_STREAMING = {Order.BY_RANK: schedule_non_streaming, Order.DEPTH_FIRST: schedule_depth_first}
_Way = ScheduleOptions | NothingStreams
_Key = tuple[bytes, _Way]

_SCHEDULED_BOTH_WAYS = 10_000  # nodes; of more, another way is looked for where it may help
_SMALLER_FIFOS = (64, 4, 1)  # elements, where those of lists do not fit
_FEWER = 4  # one element in so many less at a time
_REPLAYED_BOTH_WAYS = 100_000  # nodes; of more, where it is planned already, too


@dataclass(frozen=True)
class PartSchedules:
    """The schedules of parts, found once.

    Attributes:
        scheduling: how parts are scheduled.
        planning: how they are scheduled while configurations are compared.
        plans: by shape of the part and options.
        replays: the same with the times of their replay.
        by_rank: by shape of the part, on all elements, the non-streaming schedules that are known.
    """

    scheduling: ScheduleOptions
    planning: ScheduleOptions
    plans: dict[_Key, Schedule] = field(default_factory=dict, repr=False)
    replays: dict[_Key, Schedule] = field(default_factory=dict, repr=False)
    by_rank: dict[bytes, NonStreamingSchedule] = field(default_factory=dict, repr=False)

    def put(self, dag: CanonicalDag, found: Schedule) -> None:
        """Take a replayed schedule of a DAG for what `scheduling` gives."""
        key = _shape(dag), self.scheduling
        self.plans[key] = self.replays[key] = found

    def put_non_streaming(self, dag: CanonicalDag, found: NonStreamingSchedule) -> None:
        """Take a schedule of a DAG by rank, on all elements, in which nothing streams."""
        self.by_rank[_shape(dag)] = found

    def of(self, dag: CanonicalDag, fits: Callable[[Schedule], bool]) -> "PartWays":
        """Return the ways to schedule a part; ``fits``: whether there is room for the FIFOs of a schedule."""
        return PartWays(self, dag, _shape(dag), fits)

    @cached_property
    def partitioners(self) -> Mapping[str, Partitioner]:
        """All that there are."""
        return collect_partitioners()


@dataclass(frozen=True)
class PartWays:
    """The ways to schedule one part of a lowering."""

    _all: PartSchedules
    _dag: CanonicalDag
    _shape: bytes
    _fits: Callable[[Schedule], bool]

    def nothing_streams(self, order: Order = Order.BY_RANK) -> Schedule:
        """Return the schedule in which all data goes through memory."""
        return self._plan(self._without_streams(order))

    def with_less_in_memory(self) -> Iterator[Schedule]:
        """Yield schedules in which less is in memory at a time: one result after the other.

        Where nobody waits for a part of what others write, for a slice of an array or for what a single task could
        stream, whoever reads an array waits for all who write it, in any order of tasks.
        """
        is_small = self._dag.nodes_count <= _SCHEDULED_BOTH_WAYS
        if (self._dag.is_buffer & (self._dag.node_member != NO_MEMBER)).any() or (
            is_small and self._dag.between_tasks.any()
        ):
            yield self._plan(self._without_streams(Order.DEPTH_FIRST))

    def with_small_fifos(self) -> Iterator[Schedule]:
        """Yield replayed list schedules of a part that has one, with smaller and smaller FIFOs."""
        for options in self._small_fifos(self._all.scheduling):
            timed = self._replayed_if_it_fits(options)
            if timed is not None:
                yield timed

    def on_fewer_elements(self, may_help: Callable[[int], bool]) -> Iterator[Schedule]:
        """Yield schedules on a quarter fewer elements, and again: fewer tasks at a time hold less in memory.

        Args:
            may_help: whether a schedule may be of use that takes so many cycles at least.
        """
        planning, work = self._all.planning, int(self._dag.work.sum())
        pes = min(planning.pes, self._dag.tasks_count)  # no more are at work
        while pes > 1:
            pes -= -(-pes // _FEWER)
            if not may_help(-(-work // pes)):
                return
            ways: list[_Way] = [NothingStreams(order, pes) for order in Order]
            limits = dict.fromkeys((planning.max_fifo, 1))  # single elements leave most room for data
            for options in (*ways, *(replace(planning, pes=pes, max_fifo=most) for most in limits)):
                timed = self._replayed_if_it_fits(options)
                if timed is not None:
                    yield replace(timed, pes=planning.pes)

    def planned(self) -> Iterator[Schedule]:
        """Yield schedules with the times that were planned: one in which nothing streams, and one that does if it fits.

        Where FIFOs do not fit, streams whose FIFO would hold nearly all of them go through memory instead.
        """
        yield self.nothing_streams()
        for options in self._with_smaller_fifos(self._all.planning):
            if self._fits(found := self._plan(options)):
                yield found
                return

    def replayed(
        self, may_help: Callable[[Schedule | None], bool] = lambda _: True, *, has_small_fifos: bool = True
    ) -> Iterator[Schedule]:
        """Yield schedules with the times of their replay: as planned, and as asked for where that is another way.

        Of all but small parts, what is known comes first, and the other way only where it may help; of large parts
        only if it is planned already, or no FIFOs of the first fit. What is too large to be replayed is passed over:
        last comes the schedule in which nothing streams, if it may help or nothing else came.

        Args:
            may_help: asked once the first was yielded, of all but small parts: whether a schedule with the times that
                are planned may be of use; of none where nothing is planned yet.
            has_small_fifos: whether list schedules with smaller ones are tried where those of the known one do not fit.
        """
        is_found = False
        for asked in self._ways():
            for options in self._with_smaller_fifos(asked, has_small_fifos=has_small_fifos):
                if is_found and not self._is_worth_it(options, may_help):
                    continue
                timed = self._replayed_if_it_fits(options)
                if timed is not None:
                    is_found = True
                    yield timed
                    break

    def _replayed_if_it_fits(self, options: _Way) -> Schedule | None:
        """Return a schedule with the times of its replay; ``None`` if its FIFOs do not fit, or that is too large.

        Which FIFOs there are at a time may be others in the replay than in the plan.
        """
        if not self._fits(found := self._plan(options)):
            return None
        if isinstance(options, NothingStreams):
            return found
        key = self._shape, options
        if key not in self._all.replays:
            try:
                self._all.replays[key] = replayed(self._dag, found)
            except ReplayTooLargeError:
                return None
        timed = self._all.replays[key]
        return timed if self._fits(timed) else None

    def _without_streams(self, order: Order) -> NothingStreams:
        return NothingStreams(order, self._all.planning.pes)

    def _ways(self) -> Iterable[_Way]:
        ways = self._all.planning, self._all.scheduling
        known = self._all.replays.get((self._shape, self._all.scheduling))
        is_first = known is not None and self._dag.nodes_count > _SCHEDULED_BOTH_WAYS and self._fits(known)
        return (*dict.fromkeys(reversed(ways) if is_first else ways), self._without_streams(Order.BY_RANK))

    def _with_smaller_fifos(self, options: _Way, *, has_small_fifos: bool = True) -> Iterator[_Way]:
        """Yield options, then what is tried where its FIFOs do not fit."""
        yield options
        if isinstance(options, NothingStreams):
            return
        if has_small_fifos and self._dag.nodes_count <= _SCHEDULED_BOTH_WAYS:
            yield from self._small_fifos(options)
        yield replace(options, demote=True)

    def _small_fifos(self, options: ScheduleOptions) -> Iterator[ScheduleOptions]:
        """Yield options with smaller and smaller FIFOs, if they are what a known schedule was made with."""
        asked = self._all.scheduling
        if (self._shape, asked) in self._all.replays and options == asked and options.max_fifo is None:
            yield from (replace(options, timing=Timing.EXACT, max_fifo=most) for most in _SMALLER_FIFOS)

    def _is_worth_it(self, options: _Way, may_help: Callable[[Schedule | None], bool]) -> bool:
        """Return whether another schedule is looked for."""
        if isinstance(options, NothingStreams):
            return may_help(self._plan(options))
        key = self._shape, options
        if self._dag.nodes_count <= _SCHEDULED_BOTH_WAYS or key in self._all.replays:
            return True
        planned = self._all.plans.get(key)
        if planned is None and self._dag.nodes_count > _REPLAYED_BOTH_WAYS:
            return False
        return (planned is None or self._fits(planned)) and may_help(planned)

    def _plan(self, options: _Way) -> Schedule:
        key = self._shape, options
        if key not in self._all.plans:
            planning = self._all.planning
            if isinstance(options, NothingStreams):
                is_usual = options == self._without_streams(Order.BY_RANK)
                alone = self._all.by_rank.get(self._shape) if is_usual else None
                if alone is None:
                    alone = _NON_STREAMING[options.order](self._dag, options.pes, planning.hardware)
                planned = through_memory(self._dag, planning, postponed(self._dag, alone, planning.hardware))
                # Every task begins when all that it reads is there: nothing is early or late.
                found = replace(planned, timing=Timing.EXACT)
            else:
                found = schedule(self._dag, options, self._all.partitioners)
            self._all.plans[key] = found
        return self._all.plans[key]


def _shape(part: CanonicalDag) -> bytes:
    """Return what a schedule of a part depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for column in (part.kind, part.edge_source, part.edge_target, part.edge_volume):
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.digest()

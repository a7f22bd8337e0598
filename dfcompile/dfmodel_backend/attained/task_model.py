"""What sets of kernels take on one chip: their tasks are scheduled and replayed, their data held or moved."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.part import DagPart
from dfcompile.dfmodel_backend.attained.cores import on_cores
from dfcompile.dfmodel_backend.attained.footprints import MemoryEdges, fifos_of, word_bytes
from dfcompile.dfmodel_backend.attained.part_schedules import PartSchedules, PartWays
from dfcompile.dfmodel_backend.attained.stores import Residency, StoreTable, StoreUse
from dfcompile.dfmodel_backend.attained.task_units import Likeness, TaskUnits, likeness
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap, Timed
from dfcompile.dfmodel_backend.sharding.graphs import Choice
from dfcompile.dfmodel_backend.workload.graph import Exchange
from dfcompile.records import replace
from dfcompile.scheduler import NonStreamingSchedule, Schedule, ScheduleOptions


class ChipsInUse(Struct, frozen=True):
    """Several chips; every one is charged as the one with most of everything.

    Attributes:
        system: with the chips in use.
        sharding: of every kernel.
        exchanges: of all chips.
        apart: pairs of kernels of which the second reads what chips make of the result of the first, in a layout of its
            own: the second is in a later configuration.
    """

    system: System
    sharding: tuple[tuple[str, Choice], ...]
    exchanges: tuple[Exchange, ...]
    apart: tuple[tuple[str, str], ...]


MOST_NODES = 10_000  # of a part; how a larger one is scheduled depends on what was scheduled before


class TaskConfiguration(Timed, frozen=True, eq=False):
    """A configuration: some kernels of the lowering, whose tasks run on the chip until all have ended.

    Attributes:
        kernels: names, in topological order.
        part: its tasks as a DAG in words of the machine.
        schedule: of the part, replayed.
        stores: data that does not pass through FIFOs.
        residency: what of it SRAM holds.
    """

    kernels: tuple[str, ...]
    part: DagPart
    schedule: Schedule
    stores: tuple[StoreUse, ...]
    residency: Residency

    @property
    def cycles(self) -> int:
        """Of the schedule."""
        return self.schedule.makespan_cycles

    @property
    def sram_bytes(self) -> int:
        """Held at a time at most: FIFOs, and data."""
        return self.residency.sram_bytes

    @property
    def fifo_bytes(self) -> int:
        """Of FIFOs at a time at most."""
        return self.residency.fifo_bytes

    @property
    def dram_bytes(self) -> int:
        """Read and written."""
        return sum(store.dram_bytes for store in self.stores)

    @property
    def moves_too_much(self) -> bool:
        """Whether DRAM moves more than each input once, and once each result that is needed elsewhere."""
        return self.dram_bytes > self.residency.needed_bytes


_RECENT = 8  # configurations that are kept: those of one set by all its schedules
_SMALLEST_NODES = 20  # of a lowering that is compared with others: a schedule of it takes some milliseconds
_FEWEST_NODES = 250  # of a lowering: three more schedules of it take two or three tenths of a second
_FEW_NODES = 2_000  # of a part: more schedules of it take some tenths of a second

# By whether it is planned alone and by likeness: what is found for a set of units, and the likeness of that set.
_Known: TypeAlias = dict[tuple[bool, bytes], tuple[TaskConfiguration, Likeness]]


class Chosen(Struct, frozen=True, eq=False):
    """How a lowering was mapped as a whole when it was chosen.

    Attributes:
        whole: its only configuration.
        stores: that the configuration uses.
    """

    whole: TaskConfiguration
    stores: StoreTable


class TaskModel(Struct, frozen=True, dict=True):
    """The cost of sets of kernels of a lowering on one chip of a system.

    Attributes:
        dag: the lowering.
        system: of which one chip is used; each core is a processing element.
        scheduling: how tasks are scheduled on it.
        planning: how they are scheduled while configurations are compared; as a rule quicker.
        overlap: of compute, memory and network in a configuration.
        chips: that share the model, of which the lowering is one chip's; ``None``: one has all of it.
        least_cycles: that no schedule of all tasks on the chip beats, if that is known already; 0: it is not.
        known: a schedule of all tasks on the chip, replayed, if there is one already.
        non_streaming: a schedule by rank of all tasks of the lowering in which nothing streams, likewise.
        chosen: what `whole` found for a large lowering of the same tasks and edges, whose names may be others: no other
            schedule is looked for again.
    """

    dag: CanonicalDag
    system: System
    scheduling: ScheduleOptions
    planning: ScheduleOptions
    overlap: Overlap
    chips: ChipsInUse | None = None
    least_cycles: int = 0
    known: Schedule | None = None
    non_streaming: NonStreamingSchedule | None = None
    chosen: Chosen | None = None

    @cached_property
    def units(self) -> TaskUnits:
        """The kernels."""
        return TaskUnits(self.dag, () if self.chips is None else self.chips.apart)

    @cached_property
    def machine_dag(self) -> CanonicalDag:
        """The lowering in words of the machine."""
        return on_cores(self.dag, self.system.accelerator)

    @cached_property
    def stores(self) -> StoreTable:
        """What may lie in memory."""
        return StoreTable(self.dag)

    @cached_property
    def _schedules(self) -> PartSchedules:
        schedules = PartSchedules(self.scheduling, self.planning)
        if self.known is not None:
            schedules.put(self.machine_dag, self.known)
        if self.non_streaming is not None and self.machine_dag is self.dag:
            schedules.put_non_streaming(self.dag, self.non_streaming)
        return schedules

    @cached_property
    def _parts(self) -> dict[int, tuple[DagPart, Likeness | None]]:
        return {}

    @cached_property
    def _known(self) -> _Known:
        return {}

    @cached_property
    def _recent(self) -> dict[tuple[int, int], TaskConfiguration]:
        return {}

    @property
    def sram_bytes(self) -> float:
        """Of the chip; infinite if it is not limited."""
        return self.system.accelerator.sram_bytes or np.inf

    @cached_property
    def network_ns(self) -> tuple[float, ...]:
        """Time in which each unit exchanges with other chips."""
        exchanges = () if self.chips is None else self.chips.exchanges
        return tuple(
            sum((exchange.time_ns for exchange in exchanges if exchange.source in kernels), 0.0)
            for kernels in self.units.kernels
        )

    def whole(self, known: Schedule) -> TaskConfiguration | None:
        """Return all units as one configuration, by a schedule of all tasks or if nothing streams; ``None`` of none.

        Of all but the smallest lowerings no list schedule with smaller FIFOs is looked for: of 900 choices for small
        models that were compared these made five faster, none of which was chosen, and took half of the time.

        Args:
            known: of the lowering, with words of an element.
        """
        if not self.units.count:
            return None
        everything = (1 << self.units.count) - 1
        part = self.units.part(everything, self.machine_dag)
        is_of_machine = self.machine_dag is self.dag
        if not self._is_large_whole(everything, part):
            if is_of_machine and known.timing.is_exact:
                self._schedules.put(self.machine_dag, known)
            return self._configuration_of(everything, part, has_small_fifos=part.dag.nodes_count <= _SMALLEST_NODES)
        alone = self._ways(part).nothing_streams()
        found = self._configuration(everything, part, alone)
        if is_of_machine and known.streamed.any() and self._fits(part, known):
            found = self._faster(found, everything, part, known)
        if self.overlap.time_ns(self._compute_ns(alone.makespan_cycles), 0.0, found.network_ns) >= found.time_ns:
            return found  # what holds less in memory takes more cycles still
        return self._with_less_in_memory(everything, part, found)

    def configuration(self, units: int) -> TaskConfiguration:
        """Return the configuration of a set of units; where no FIFOs fit or no replay is feasible, nothing streams.

        Another way to schedule them than the planned one is asked for because it takes fewer cycles, as a rule: of a
        large part it is not looked for where memory or network take longer than these, nor replayed where its plan is
        no faster.
        """
        return self._found_once(units, self._configuration_of)

    def planned(self, units: int, least_ns: float = 0.0) -> TaskConfiguration:
        """Return the configuration of a set of units if its schedule took what was planned.

        Args:
            units: bits of their numbers.
            least_ns: that no configuration of them takes less than, if that is known.
        """
        return self._found_once(units, partial(self._plan_of, least_ns=least_ns), is_plan=True)

    def _found_once(
        self, units: int, find: Callable[[int, DagPart], TaskConfiguration], *, is_plan: bool = False
    ) -> TaskConfiguration:
        """Return what is found for a set of units; of sets that are alike it is found once."""
        part, like = self._parts.get(units) or self._part(units)
        if self.chosen is not None and self._is_large_whole(units, part):
            return self._as_chosen(self.chosen, units, part)
        known = None if like is None else self._known.get((is_plan, like.key))
        if like is not None and known is not None:
            alike = (map(self.stores.name, each.stores) for each in (known[1], like))
            return self._renamed(known[0], units, part, dict(zip(*alike, strict=True)))
        found = find(units, part)
        if like is not None:
            self._known[is_plan, like.key] = found, like
        return found

    def _part(self, units: int) -> tuple[DagPart, Likeness | None]:
        """Return the tasks of a set of units, and what they are like unless they are many; then they are not kept."""
        part = self.units.part(units, self.machine_dag)
        if part.dag.nodes_count > MOST_NODES:
            return part, None
        network_ns = sum(self.network_ns[unit] for unit in self.units.members(units))
        found = self._parts[units] = part, likeness(self.dag, self.stores, part, network_ns)
        return found

    def _as_chosen(self, chosen: Chosen, units: int, part: DagPart) -> TaskConfiguration:
        """Return the configuration of all tasks by the schedule that was chosen."""
        if not chosen.stores.is_like(self.stores):
            return self._configuration(units, part, chosen.whole.schedule)
        names = ([scope.name for scope in stores.dag.scopes] for stores in (chosen.stores, self.stores))
        return self._renamed(chosen.whole, units, part, dict(zip(*names, strict=True)))

    def _renamed(
        self, found: TaskConfiguration, units: int, part: DagPart, names: Mapping[str, str]
    ) -> TaskConfiguration:
        """Return a configuration as that of other tasks which are alike, given the names of their stores."""
        return replace(
            found,
            kernels=tuple(self.units.names[unit] for unit in self.units.members(units)),
            part=part,
            stores=tuple(replace(store, name=names[store.name]) for store in found.stores),
            residency=replace(found.residency, edge=part.edge[np.searchsorted(found.part.edge, found.residency.edge)]),
        )

    def _configuration_of(self, units: int, part: DagPart, *, has_small_fifos: bool = True) -> TaskConfiguration:
        fastest: TaskConfiguration | None = None

        def may_help(planned: Schedule | None) -> bool:
            if fastest is None:
                return True
            if planned is None:
                return self._waits_for_compute(fastest)
            return self._faster(fastest, units, part, planned) is not fastest

        ways = self._ways(part)
        for schedule in ways.replayed(may_help, has_small_fifos=has_small_fifos):
            fastest = self._faster(fastest, units, part, schedule)
        assert fastest is not None  # without streams everything fits
        fastest = self._with_less_in_memory(units, part, fastest)
        is_short_of_room = (
            fastest.moves_too_much and not self._waits_for_compute(fastest) and part.dag.nodes_count <= _FEW_NODES
        )
        if has_small_fifos and (is_short_of_room or self._may_be_listed_shorter(units, part, fastest)):
            for schedule in ways.with_small_fifos():  # which leave more room for data, and place tasks otherwise
                fastest = self._faster(fastest, units, part, schedule)
        if is_short_of_room and self._is_whole(units):  # of others fewer kernels at a time need less memory
            most_ns = fastest.time_ns
            for schedule in ways.on_fewer_elements(lambda cycles: self._compute_ns(cycles) < most_ns):
                fastest = self._faster(fastest, units, part, schedule)
        return fastest

    def _may_be_listed_shorter(self, units: int, part: DagPart, found: TaskConfiguration) -> bool:
        """Return whether the cycles of a small whole decide its time and are above their bound, if that is known."""
        is_small = self._is_whole(units) and part.dag.nodes_count <= _FEWEST_NODES
        return is_small and 0 < self.least_cycles < found.cycles and self._waits_for_compute(found)

    def _is_whole(self, units: int) -> bool:
        return units.bit_count() == self.units.count

    def _is_large_whole(self, units: int, part: DagPart) -> bool:
        return self._is_whole(units) and part.dag.nodes_count > _FEW_NODES

    def _compute_ns(self, cycles: int) -> float:
        return cycles / self.system.accelerator.frequency_ghz

    def _waits_for_compute(self, found: TaskConfiguration) -> bool:
        return self.overlap.time_ns(0, found.memory_ns, found.network_ns) < found.time_ns

    def _plan_of(self, units: int, part: DagPart, least_ns: float) -> TaskConfiguration:
        found: TaskConfiguration | None = None
        for schedule in self._ways(part).planned():
            found = self._faster(found, units, part, schedule)
            if found.time_ns <= least_ns and part.dag.nodes_count <= MOST_NODES:  # of larger parts plans tell more
                return found
        assert found is not None  # without streams everything fits
        # Of others it is looked at when they are replayed.
        return self._with_less_in_memory(units, part, found) if self._is_whole(units) else found

    def _with_less_in_memory(self, units: int, part: DagPart, known: TaskConfiguration) -> TaskConfiguration:
        """Return a configuration, or a faster one of schedules that hold less in memory.

        These take more cycles than a schedule that streams nothing, so they are not tried where its cycles decide.
        """
        if known.schedule.streamed.any() or (known.moves_too_much and not self._waits_for_compute(known)):
            for schedule in self._ways(part).with_less_in_memory():
                known = self._faster(known, units, part, schedule)
        return known

    def _faster(
        self, known: TaskConfiguration | None, units: int, part: DagPart, schedule: Schedule
    ) -> TaskConfiguration:
        """Return a configuration, or the one of another schedule if that takes less.

        Where cycles alone take no less, what of the data SRAM holds is not looked for.
        """
        compute_ns = self._compute_ns(schedule.makespan_cycles)
        if known is not None and self.overlap.time_ns(compute_ns, 0.0, known.network_ns) >= known.time_ns:
            return known
        found = self._configuration(units, part, schedule)
        return found if known is None or found.time_ns < known.time_ns else known

    def _ways(self, part: DagPart) -> PartWays:
        return self._schedules.of(part.dag, lambda schedule: self._fits(part, schedule))

    def _fits(self, part: DagPart, schedule: Schedule) -> bool:
        return fifos_of(self.dag, part, schedule).peak <= self.sram_bytes

    def _edges(self, part: DagPart, found: Schedule) -> MemoryEdges:
        edges = np.flatnonzero(~found.streamed & self.stores.moves_data[part.edge])
        source, target = part.dag.edge_source[edges], part.dag.edge_target[edges]
        is_written = part.dag.is_computational[source]
        return MemoryEdges(
            edge=part.edge[edges],
            is_read=part.dag.is_computational[target],
            is_written=is_written,
            reader=np.stack([found.start[target], found.last_out[target]]),
            writer=np.where(is_written, np.stack([found.start[source], found.last_out[source]]), 0),
            work=part.dag.work[target],
            word_bytes=word_bytes(self.dag, part, edges),
            fifos=fifos_of(self.dag, part, found),
        )

    def _configuration(self, units: int, part: DagPart, found: Schedule) -> TaskConfiguration:
        """Return the configuration of a set of units by a schedule; what was looked at last is kept."""
        key = units, id(found)
        if key not in self._recent:
            if len(self._recent) == _RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = self._configured(units, part, found)
        return self._recent[key]

    def _configured(self, units: int, part: DagPart, found: Schedule) -> TaskConfiguration:
        stores, residency = self.stores.uses(self._edges(part, found), self.sram_bytes)
        members = self.units.members(units)
        compute_ns = self._compute_ns(found.makespan_cycles)
        memory_ns = sum(store.dram_bytes for store in stores) / self.system.dram_gb_per_s
        network_ns = sum(self.network_ns[unit] for unit in members)
        return TaskConfiguration(
            kernels=tuple(self.units.names[unit] for unit in members),
            part=part,
            schedule=found,
            stores=stores,
            residency=residency,
            compute_ns=compute_ns,
            memory_ns=memory_ns,
            network_ns=network_ns,
            time_ns=self.overlap.time_ns(compute_ns, memory_ns, network_ns),
        )

"""What sets of kernels take on one chip: their tasks are scheduled and replayed, their data held or moved."""

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.part import DagPart
from dfcompile.dfmodel_backend.attained.chips_in_use import ChipsInUse
from dfcompile.dfmodel_backend.attained.cores import on_cores
from dfcompile.dfmodel_backend.attained.likeness import MOST_NODES, Likeness, likeness
from dfcompile.dfmodel_backend.attained.part_schedules import PartSchedules
from dfcompile.dfmodel_backend.attained.stores import BlockEdges, StoreTable, StoreUse
from dfcompile.dfmodel_backend.attained.task_units import TaskUnits
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.distinct import numbered
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions


class TaskConfiguration(Struct, frozen=True, eq=False):
    """A configuration: some kernels of the lowering, whose tasks run on the chip until all have ended.

    Attributes:
        kernels: names, in topological order.
        part: its tasks as a DAG in words of the machine.
        schedule: of the part, replayed.
        stores: data that does not pass through FIFOs.
        sram_bytes: of the spatial block with most of them: FIFOs, and what is held.
        fifo_bytes: of the spatial block with most of them.
        compute_ns: of the schedule.
        memory_ns: of the DRAM traffic.
        network_ns: of exchanges with other chips.
        time_ns: of all, overlapped as the options say.
    """

    kernels: tuple[str, ...]
    part: DagPart
    schedule: Schedule
    stores: tuple[StoreUse, ...]
    sram_bytes: int
    fifo_bytes: int
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float

    @property
    def cycles(self) -> int:
        """Of the schedule."""
        return self.schedule.makespan_cycles

    @property
    def dram_read_bytes(self) -> int:
        """Of all tasks."""
        return sum(store.dram_read_bytes for store in self.stores)

    @property
    def dram_write_bytes(self) -> int:
        """Of all tasks."""
        return sum(store.dram_write_bytes for store in self.stores)

    @property
    def dram_bytes(self) -> int:
        """Read and written."""
        return sum(store.dram_bytes for store in self.stores)

    @property
    def bound_by(self) -> str:
        """Which of compute, memory and network takes longest."""
        times = {"compute": self.compute_ns, "memory": self.memory_ns, "network": self.network_ns}
        return max(times, key=lambda kind: times[kind])


# What is found for sets of units of each likeness, and the likeness of the set that it was found for.
_Known: TypeAlias = dict[bytes, tuple[TaskConfiguration | None, Likeness]]
_Find: TypeAlias = Callable[[int, DagPart], TaskConfiguration | None]


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
    """

    dag: CanonicalDag
    system: System
    scheduling: ScheduleOptions
    planning: ScheduleOptions
    overlap: Overlap
    chips: ChipsInUse | None = None
    least_cycles: int = 0
    known: Schedule | None = None

    @cached_property
    def units(self) -> TaskUnits:
        """The kernels."""
        return TaskUnits.of(self.dag, () if self.chips is None else self.chips.apart)

    @cached_property
    def machine_dag(self) -> CanonicalDag:
        """The lowering in words of the machine."""
        return on_cores(self.dag, self.system.accelerator)

    @cached_property
    def _machine_units(self) -> TaskUnits:
        return replace(self.units, dag=self.machine_dag)

    @cached_property
    def stores(self) -> StoreTable:
        """What may lie in memory."""
        return StoreTable(self.dag)

    @cached_property
    def _schedules(self) -> PartSchedules:
        schedules = PartSchedules(self.scheduling, self.planning)
        if self.known is not None:
            schedules.put(self.machine_dag, self.known)
        return schedules

    @cached_property
    def _parts(self) -> dict[int, tuple[DagPart, Likeness | None]]:
        return {}

    @cached_property
    def _alike_configurations(self) -> _Known:
        return {}

    @cached_property
    def _alike_plans(self) -> _Known:
        return {}

    @property
    def sram_bytes(self) -> float:
        """Of the chip; infinite if it is not limited."""
        return self.system.accelerator.sram_bytes or np.inf

    def unit_network_ns(self, unit: int) -> float:
        """Return the time in which a unit exchanges with other chips."""
        return self._network_ns[unit]

    @cached_property
    def _network_ns(self) -> tuple[float, ...]:
        exchanges = () if self.chips is None else self.chips.exchanges
        return tuple(
            sum((exchange.time_ns for exchange in exchanges if exchange.source in kernels), 0.0)
            for kernels in self.units.kernels
        )

    def configuration(self, units: int) -> TaskConfiguration | None:
        """Return the configuration of a set of units, or None if its FIFOs exceed SRAM.

        Another way to schedule them than the planned one is asked for because it takes fewer cycles, as a rule: of a
        large part it is not looked for where memory or network take longer than these, nor replayed where its plan is
        no faster.

        Raises:
            UserError: the replay of its schedule is too large.
        """
        return self._found_once(units, self._alike_configurations, self._configuration_of)

    def planned(self, units: int) -> TaskConfiguration | None:
        """Return the configuration of a set of units if its schedule took what was planned, None if it does not fit."""
        return self._found_once(units, self._alike_plans, self._plan_of)

    def _found_once(self, units: int, known: _Known, find: _Find) -> TaskConfiguration | None:
        """Return what is found for a set of units; of sets that are alike it is found once."""
        part, like = self._parts.get(units) or self._part(units)
        if like is None:
            return find(units, part)
        if like.key not in known:
            known[like.key] = (find(units, part), like)
            return known[like.key][0]
        found, first = known[like.key]
        return None if found is None else self._renamed(found, units, part, (first, like))

    def _part(self, units: int) -> tuple[DagPart, Likeness | None]:
        """Return the tasks of a set of units, and what they are like unless they are many; then they are not kept."""
        part = self._machine_units.part(units)
        if part.dag.nodes_count > MOST_NODES:
            return part, None
        network_ns = sum(self.unit_network_ns(unit) for unit in self.units.members(units))
        found = self._parts[units] = part, likeness(self.dag, self.stores, part, network_ns)
        return found

    def _renamed(
        self, found: TaskConfiguration, units: int, part: DagPart, likes: tuple[Likeness, Likeness]
    ) -> TaskConfiguration:
        """Return a configuration as that of another set which is alike."""
        first, like = likes
        names = {
            self.stores.name(store): self.stores.name(other)
            for store, other in zip(first.stores, like.stores, strict=True)
        }
        return replace(
            found,
            kernels=tuple(self.units.names[unit] for unit in self.units.members(units)),
            part=part,
            stores=tuple(replace(store, name=names[store.name]) for store in found.stores),
        )

    def _configuration_of(self, units: int, part: DagPart) -> TaskConfiguration | None:
        fastest: TaskConfiguration | None = None

        def may_help(planned: Schedule | None) -> bool:
            if fastest is None:
                return True
            if planned is None:
                return self._waits_for_compute(fastest)
            return self._configuration(units, part, planned).time_ns < fastest.time_ns

        for schedule in self._schedules.replayed(part.dag, lambda schedule: self._fits(part, schedule), may_help):
            found = self._configuration(units, part, schedule)
            if fastest is None or found.time_ns < fastest.time_ns:
                fastest = found
        return fastest

    def _waits_for_compute(self, found: TaskConfiguration) -> bool:
        return self.overlap.time_ns(0, found.memory_ns, found.network_ns) < found.time_ns

    def _plan_of(self, units: int, part: DagPart) -> TaskConfiguration | None:
        schedule = self._schedules.planned(part.dag, lambda schedule: self._fits(part, schedule))
        return None if schedule is None else self._configuration(units, part, schedule)

    def _fits(self, part: DagPart, schedule: Schedule) -> bool:
        return int(_fifo_bytes(self.dag, part, schedule).max(initial=0)) <= self.sram_bytes

    def _edges(self, units: int, part: DagPart, found: Schedule, fifo_bytes: Int64) -> BlockEdges:
        edges = np.flatnonzero(~found.streamed & self.stores.moves_data[part.edge])
        source, target = part.dag.edge_source[edges], part.dag.edge_target[edges]
        moment, task = _moments(part.dag, found), part.dag.is_computational
        inside = np.zeros(self.dag.nodes_count, dtype=np.bool_)
        inside[self.units.tasks(units)] = True
        return BlockEdges(
            edge=part.edge[edges],
            block=np.where(task[target], moment[target], moment[source]),
            writer_block=np.where(task[source], moment[source], 0),
            start=found.start[target],
            end=found.last_out[target],
            work=part.dag.work[target],
            word_bytes=_word_bytes(self.dag, part, edges),
            inside=inside,
            fifo_bytes=fifo_bytes,
        )

    def _configuration(self, units: int, part: DagPart, found: Schedule) -> TaskConfiguration:
        fifo_bytes = _fifo_bytes(self.dag, part, found)
        stores, sram_bytes = self.stores.uses(self._edges(units, part, found, fifo_bytes), self.sram_bytes)
        members = self.units.members(units)
        moved = sum(store.dram_bytes for store in stores)
        compute_ns = found.makespan_cycles / self.system.accelerator.frequency_ghz
        memory_ns = moved / self.system.dram_gb_per_s
        network_ns = sum(self.unit_network_ns(unit) for unit in members)
        return TaskConfiguration(
            kernels=tuple(self.units.names[unit] for unit in members),
            part=part,
            schedule=found,
            stores=stores,
            sram_bytes=sram_bytes,
            fifo_bytes=int(fifo_bytes.max(initial=0)),
            compute_ns=compute_ns,
            memory_ns=memory_ns,
            network_ns=network_ns,
            time_ns=self.overlap.time_ns(compute_ns, memory_ns, network_ns),
        )


def _fifo_bytes(dag: CanonicalDag, part: DagPart, found: Schedule) -> Int64:
    """Return the bytes of the FIFOs of each spatial block, words as wide as the machine's; without barriers of all."""
    edges = np.flatnonzero(found.streamed)
    held = found.fifo_capacity[edges] * _word_bytes(dag, part, edges)
    moment = _moments(part.dag, found)
    block = moment[part.dag.edge_source[edges]]
    per_block = np.zeros(int(moment.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(per_block, block, held)
    return per_block


def _word_bytes(dag: CanonicalDag, part: DagPart, edges: Int64) -> Int64:
    """Return the bytes of a word of the machine on some edges of a part."""
    width = -(-dag.edge_volume[part.edge[edges]] // np.maximum(part.dag.edge_volume[edges], 1))
    return np.asarray(width * dag.edge_element_bytes[part.edge[edges]])


def _moments(dag: CanonicalDag, found: Schedule) -> Int64:
    """Return the spatial block of each task, blocks of memory alone left out; those that overlap in time are one."""
    moment = np.zeros(dag.nodes_count, dtype=np.int64)
    if found.barrier:
        task = dag.is_computational
        moment[task] = numbered(found.block[task])[1]
    return moment

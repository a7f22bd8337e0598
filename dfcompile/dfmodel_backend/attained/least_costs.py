"""Lower bounds on configurations: what no schedule of their tasks can beat, wherever the data lies."""

from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.attained.cores import least_work
from dfcompile.dfmodel_backend.attained.least_paths import LeastPaths
from dfcompile.dfmodel_backend.attained.task_model import TaskModel
from dfcompile.dfmodel_backend.attained.task_units import NO_UNIT
from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, members_of
from dfcompile.distinct import distinct, first_places, numbered
from dfcompile.scheduler import lower_bound_cycles

CELLS = 2**22  # sets times stores that are worked on at a time, to bound memory


class _Entries(Struct, frozen=True, eq=False):
    """Bytes by store and unit, where there are some: a unit touches few of thousands of stores.

    Attributes:
        store: per entry, ascending.
        unit: per entry, ascending among those of a store.
        size: per entry, in bytes.
    """

    store: Int64
    unit: Int64
    size: Column

    @staticmethod
    def of(*parts: tuple[Int64, Int64, Int64 | Column]) -> "_Entries":
        store, unit, size = (np.concatenate(column) for column in zip(*parts, strict=True))
        count = int(unit.max(initial=0)) + 1
        places, entry = numbered(store * count + unit)
        return _Entries(places // count, places % count, np.bincount(entry, size, len(places)).astype(float))

    def of_sets(self, first: int, last: int, members: Members) -> Column:
        """Return the bytes of some stores by the units of each set, shape [stores, sets]."""
        found = np.zeros((last - first, len(members)))
        begin, end = np.searchsorted(self.store, (first, last)).tolist()
        if begin < end:
            stores, starts = np.unique(self.store[begin:end], return_index=True)
            sizes = members.T[self.unit[begin:end]] * self.size[begin:end, None]
            found[stores - first] = np.add.reduceat(sizes, starts, axis=0)
        return found

    def of_units(self, units: Column, stores: int) -> Column:
        """Return the bytes of each store, each unit as often as ``units`` says, shape [stores]."""
        return np.bincount(self.store, self.size * units[self.unit], minlength=stores).astype(float)


class _UnitStores(Struct, frozen=True, eq=False):
    """The stores of a lowering as sums over units, in bytes.

    Attributes:
        written: by each unit.
        read: by each unit.
        all_written: by all units, shape [stores].
        whole: each element once, shape [stores].
        is_result: whether it must be written, shape [stores].
    """

    written: _Entries
    read: _Entries
    all_written: Column
    whole: Column
    is_result: Column


class LeastCosts(Struct, frozen=True, dict=True):
    """Bounds on the times of sets of kernels of a lowering."""

    model: TaskModel

    @cached_property
    def _stores(self) -> _UnitStores:
        model = self.model
        dag, unit, table = model.dag, model.units.unit, model.stores
        buffers = len(table.whole_bytes)
        source, target = dag.edge_source, dag.edge_target
        into = (unit[source] != NO_UNIT) & dag.is_buffer[target]
        makers, readers, sizes = self._streams()
        streams = buffers + np.arange(len(sizes))
        written = _Entries.of(
            (table.of_node[target[into]], unit[source[into]], table.edge_bytes[into]), (streams, makers, sizes)
        )
        return _UnitStores(
            written=written,
            read=_Entries.of(self._taken(self._out_of_buffers), (streams, readers, sizes)),
            all_written=written.of_units(np.ones(model.units.count), buffers + len(sizes)),
            whole=np.concatenate([table.whole_bytes, sizes]).astype(float),
            is_result=np.concatenate([table.is_result, np.zeros(len(sizes))]).astype(float),
        )

    @cached_property
    def _out_of_buffers(self) -> Bool:
        """Whether a task of a unit reads from a buffer over each edge, shape [edges]."""
        dag, unit = self.model.dag, self.model.units.unit
        out: Bool = dag.is_buffer[dag.edge_source] & (unit[dag.edge_target] != NO_UNIT)
        return out

    def _taken(self, out: Bool) -> tuple[Int64, Int64, Column]:
        """Return, per array and unit that reads it, an equal part of the bytes that the unit takes at least.

        Several units may take the same elements: together they take no less than the largest of them, so no less than
        the mean.
        """
        dag, unit, table = self.model.dag, self.model.units.unit, self.model.stores
        count = self.model.units.count
        key = table.of_node[dag.edge_source[out]] * count + unit[dag.edge_target[out]]
        pairs, place = numbered(key)
        taken = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(taken, place, table.taken_bytes[out])
        _, store, readers = np.unique(pairs // count, return_inverse=True, return_counts=True)
        return pairs // count, pairs % count, taken / readers[store]

    def _streams(self) -> tuple[Int64, Int64, Int64]:
        """Return, per scope that streams to other units, its unit, the one that reads most of it, and the bytes."""
        model = self.model
        dag, unit, table = model.dag, model.units.unit, model.stores
        source, target = dag.edge_source, dag.edge_target
        across = np.flatnonzero((unit[source] != NO_UNIT) & (unit[target] != NO_UNIT) & (unit[source] != unit[target]))
        source, target = source[across], target[across]
        pairs, place = numbered(table.of_node[source] * model.units.count + unit[target])
        once = distinct(place * dag.nodes_count + source)
        pair, task = once // dag.nodes_count, once % dag.nodes_count
        size, maker = np.zeros((2, len(pairs)), dtype=np.int64)
        np.add.at(size, pair, table.out_bytes[task])
        maker[pair] = unit[task]
        store, reader = pairs // model.units.count, pairs % model.units.count
        order = np.lexsort((reader, -size, store))
        most = order[first_places(store[order])[1]]
        most = most[size[most] > 0]
        return maker[most], reader[most], size[most]

    def memory_ns(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the time of the DRAM traffic that each pair of sets causes at least, however large SRAM is.

        Args:
            members: units of each set, shape [sets, units].
            before: number of the smaller set of each pair.
            after: number of the larger set of each pair.
        """
        moved = np.zeros(len(before))
        stores = len(self._stores.whole)
        entries = max(len(self._stores.written.store), len(self._stores.read.store), stores)
        at_a_time = max(1, CELLS * stores // max(1, len(members) * entries))
        for first in range(0, stores, at_a_time):
            moved += self._moved(first, min(first + at_a_time, stores), members, before, after)
        return moved / self.model.system.dram_gb_per_s

    def _moved(self, first: int, last: int, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the bytes of some stores that each pair moves at least: whole numbers."""
        stores = self._stores
        written = stores.written.of_sets(first, last, members)
        read = stores.read.of_sets(first, last, members)
        readers = self._readers.of_sets(first, last, members)
        all_readers = self._readers.of_units(np.ones(self.model.units.count), len(stores.whole))[first:last]
        touching = self._touching.of_sets(first, last, members)
        all_written, some = stores.all_written[first:last], slice(first, last)
        moved = np.zeros(len(before))
        for store, (whole, is_result) in enumerate(zip(stores.whole[some], stores.is_result[some], strict=True)):
            pairs = np.flatnonzero(touching[store][after] != touching[store][before])  # few of many touch a store
            smaller, larger = before[pairs], after[pairs]
            made = written[store][larger] - written[store][smaller]
            taken = read[store][larger] - read[store][smaller]
            elsewhere = all_written[store] - made if all_written[store] else whole
            moved[pairs] += np.minimum(elsewhere, taken)
            if all_written[store]:
                apart = readers[store][larger] - readers[store][smaller] < all_readers[store]
                moved[pairs] += np.where(apart | (is_result > 0), made, 0.0)
        return moved

    @cached_property
    def _touching(self) -> _Entries:
        """One byte per store and unit that reads or writes it."""
        written, read = self._stores.written, self._stores.read
        places = ((side.store, side.unit, np.ones(len(side.store), dtype=np.int64)) for side in (written, read))
        return _Entries.of(*places)

    @cached_property
    def _readers(self) -> _Entries:
        """One byte per store and unit that reads of it."""
        read = self._stores.read
        reads = read.size > 0
        return _Entries(read.store[reads], read.unit[reads], np.ones(int(reads.sum())))

    def compute_ns(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the time that the tasks of each pair take at least: their work on all cores, or their longest path."""
        chip = self.model.system.accelerator
        work = members.astype(float) @ np.array(self._machine_work, float)
        cycles = np.maximum((work[after] - work[before]) / chip.cores, self._paths.cycles(members, before, after))
        return np.asarray(cycles / chip.frequency_ghz)

    @cached_property
    def _paths(self) -> LeastPaths:
        return LeastPaths.of(self.model.machine_dag, self.model.units.unit, self.model.units.count)

    @cached_property
    def _machine_work(self) -> Int64:
        model = self.model
        totals: Int64 = np.zeros(model.units.count, dtype=np.int64)
        tasks = np.flatnonzero(model.units.unit != NO_UNIT)
        np.add.at(totals, model.units.unit[tasks], model.machine_dag.work[tasks])
        return totals

    def network_ns(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the time of the exchanges of each pair."""
        total: Column = members.astype(float) @ np.array(self.model.network_ns, float)
        return np.asarray(np.maximum(total[after] - total[before], 0.0))

    def fits_dram(self, before: int, units: int) -> bool:
        """Return whether DRAM holds all that is alive while units run after others."""
        capacity = self.model.system.dram_capacity_bytes
        return not capacity or self._everything <= capacity or self.live_bytes(before, units) <= capacity

    @cached_property
    def _everything(self) -> int:
        return int(self._stores.whole.sum())

    def live_bytes(self, before: int, units: int) -> int:
        """Return the DRAM bytes alive while units run after others: inputs, weights, results, what waits to be read."""
        stores = self._stores
        count = self.model.units.count
        done, both = members_of((before, before | units), count).astype(float)
        is_given, size = stores.all_written == 0, len(stores.whole)
        begun = (stores.written.of_units(both, size) > 0) | is_given
        awaited = (stores.read.of_units(1 - done, size) > 0) | (stores.is_result > 0) | is_given
        return int(stores.whole[begun & awaited].sum())

    def most_live(self) -> tuple[int, str]:
        """Return the most bytes that are alive in DRAM if units run one by one, and the unit that runs then."""
        names = self.model.units.names
        return max((self.live_bytes((1 << unit) - 1, 1 << unit), name) for unit, name in enumerate(names))

    def bound_on_chips_s(self, chips: int) -> float:
        """Return a time in seconds that these tasks, shared by up to so many chips in any way, do not beat.

        Their work / all cores, in words as wide as can be, and inputs, weights and results once / bandwidth of all
        chips: what chips share is no less together.
        """
        model, cycles = self.model, self.cycles_on_chips(chips)
        memory_ns = self._all_memory_ns / chips
        return model.overlap.time_ns(cycles / model.system.accelerator.frequency_ghz, memory_ns, 0.0) / 1e9

    def cycles_on_chips(self, chips: int) -> int:
        """Return the cycles of these tasks' work on all cores of so many chips, in words as wide as can be."""
        model = self.model
        work = int(least_work(model.dag, model.system.accelerator).sum())
        return -(-work // (model.system.accelerator.cores * chips))

    @cached_property
    def _all_memory_ns(self) -> float:
        members = np.array([[False], [True]]).repeat(self.model.units.count, axis=1)
        ns = float(self.memory_ns(members, np.array([0]), np.array([1]))[0])
        return ns + self._more_of_given() / self.model.system.dram_gb_per_s

    def _more_of_given(self) -> float:
        """Return by how many bytes what a unit takes at most of what is given is more than the mean of the units."""
        stores, (store, _, taken) = self._stores, self._taken(self._out_of_buffers)
        readers = np.bincount(store, minlength=len(stores.whole))
        most, mean = np.zeros((2, len(stores.whole)))
        np.maximum.at(most, store, taken * readers[store])
        np.add.at(mean, store, taken)
        more = np.minimum(stores.whole, most) - np.minimum(stores.whole, mean)
        return float(more[stores.all_written == 0].sum())

    def bound_ns(self) -> float:
        """Return a time that no schedule of the lowering beats on this machine.

        All tasks on the processing elements (`lower_bound_cycles`), inputs and weights read once, results written once.
        """
        model = self.model
        compute_ns = self.cycles / model.system.accelerator.frequency_ghz
        return model.overlap.time_ns(compute_ns, self._all_memory_ns, sum(model.network_ns))

    @cached_property
    def cycles(self) -> int:
        """Cycles that no schedule of all tasks on the chip beats."""
        model = self.model
        return model.least_cycles or lower_bound_cycles(model.machine_dag, model.system.accelerator.cores)

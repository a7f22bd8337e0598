"""Lower bounds on configurations: what no schedule of their tasks beats, by work, longest paths and least traffic."""

from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.attained.cores import least_work
from dfcompile.dfmodel_backend.attained.footprints import largest, sums
from dfcompile.dfmodel_backend.attained.task_model import TaskModel
from dfcompile.dfmodel_backend.attained.task_units import NO_UNIT
from dfcompile.dfmodel_backend.columns import Column, Mask, Members, Numbers, members_of, sums_over
from dfcompile.distinct import distinct, first_places, numbered
from dfcompile.scheduler import lower_bound_cycles
from dfcompile.scheduler.bounds.precedence import NO_STREAM, directions

# Of larger graphs paths are not looked at: the bound is their work alone.
MOST_CELLS = 2**20  # nodes times units
MOST_STEPS = 2**26  # sets times pairs of units
NOWHERE = -(2**40)  # cycles: of a node that no path from a unit reaches


def longest_paths(dag: CanonicalDag, unit: Int64, units: int) -> Int64:
    """Return the longest paths between the units of a lowering; of a large one none.

    Args:
        dag: the lowering.
        unit: of each node, shape [nodes].
        units: how many there are.

    Returns:
        Cycles from the start of a task of one unit until the end of one of another at least, where a path leads from
        the former to the latter, otherwise 0, shape [units, units].
    """
    between = np.zeros((units, units), np.int64)
    if dag.nodes_count * units > MOST_CELLS:
        return between
    ahead, _ = directions(dag)
    task, work = dag.is_computational.tolist(), dag.work.tolist()
    start = np.full((dag.nodes_count, units), NOWHERE, np.int64)
    end = start.copy()
    for node in ahead.order:
        begin, least = start[node], end[node]
        for other, to_start, to_end in ahead.awaited[node]:
            if to_start == NO_STREAM:
                np.maximum(begin, end[other], out=begin)
            else:
                np.maximum(begin, start[other] + to_start, out=begin)
                np.maximum(least, end[other] + to_end, out=least)
        own = int(unit[node])
        if task[node] and own != NO_UNIT:
            begin[own] = max(begin[own], 0)
            np.maximum(least, begin + work[node], out=least)
            np.maximum(between[:, own], least, out=between[:, own])
        else:
            least[:] = begin
    return between


def longest_within(between: Int64, members: Members, before: Numbers, after: Numbers) -> Column:
    """Return the longest path within the units by which each pair of down-sets differs; 0 where they are too many.

    A path between two units of such a set leads through units of the set alone.

    Args:
        between: longest paths between units.
        members: units of each set, shape [sets, units].
        before: number of the smaller set of each pair.
        after: number of the larger set of each pair.
    """
    longest = np.zeros(len(before))
    units = len(between)
    if not between.any() or len(before) * units * units > MOST_STEPS:
        return longest
    inside = members[after] & ~members[before]
    for unit in range(units):
        rows = np.flatnonzero(inside[:, unit])
        reached = np.flatnonzero(between[unit])
        paths = np.where(inside[np.ix_(rows, reached)], between[unit][reached], 0)
        longest[rows] = np.maximum(longest[rows], paths.max(axis=1, initial=0))
    return longest


CELLS = 2**20  # sets times stores of units that are worked on at a time, to bound memory
PAIRS = 256  # of sets at a time: those near to each other differ from others in few stores


class _UnitStores(Struct, frozen=True, eq=False):
    """The stores of a lowering as sums over units, in bytes: a unit touches few of thousands of stores.

    Attributes:
        store: per pair of a store and a unit that touches it, ascending.
        unit: per pair, ascending among those of a store.
        written: per pair.
        read: per pair.
        whole: each element once, shape [stores].
        is_result: whether it must be written, shape [stores].
    """

    store: Int64
    unit: Int64
    written: Column
    read: Column
    whole: Column
    is_result: Bool

    def of_all(self, sizes: Column) -> Column:
        """Return the sum of each store over all units, shape [stores]."""
        return np.bincount(self.store, sizes, len(self.whole)).astype(float)


def _in_some(members: Members) -> Mask:
    """Return which units are in some of the sets, but not in all."""
    return np.asarray(members.any(axis=0) & ~members.all(axis=0))


class LeastCosts(Struct, frozen=True, dict=True):
    """Bounds on the times of sets of kernels of a lowering."""

    model: TaskModel

    @cached_property
    def _stores(self) -> _UnitStores:
        model = self.model
        dag, unit, table = model.dag, model.units.unit, model.stores
        buffers, count = len(table.whole_bytes), model.units.count
        source, target = dag.edge_source, dag.edge_target
        into = (unit[source] != NO_UNIT) & dag.is_buffer[target]
        makers, readers, sizes = self._streams()
        streams = buffers + np.arange(len(sizes))
        taken_of, consumers, taken = self._taken
        store = np.concatenate([table.buffer[target[into]], streams, taken_of, streams])
        of_unit = np.concatenate([unit[source[into]], makers, consumers, readers])
        size = np.concatenate([table.edge_bytes[into], sizes, taken, sizes])
        pairs, entry = numbered(store * count + of_unit)
        is_read = np.arange(len(store)) >= np.count_nonzero(into) + len(sizes)
        written, read = (np.bincount(entry, size * which, len(pairs)).astype(float) for which in (~is_read, is_read))
        return _UnitStores(
            store=pairs // max(count, 1),
            unit=pairs % max(count, 1),
            written=written,
            read=read,
            whole=np.concatenate([table.whole_bytes, sizes]).astype(float),
            is_result=np.concatenate([table.is_result, np.zeros(len(sizes), dtype=np.bool_)]),
        )

    @cached_property
    def _taken(self) -> tuple[Int64, Int64, Column]:
        """Per array and unit that reads it, an equal part of the bytes that the unit takes at least.

        Several units may take the same elements: together they take no less than the largest of them, so no less than
        the mean.
        """
        dag, unit, table = self.model.dag, self.model.units.unit, self.model.stores
        count, out = self.model.units.count, dag.is_buffer[dag.edge_source] & (unit[dag.edge_target] != NO_UNIT)
        key = table.buffer[dag.edge_source[out]] * count + unit[dag.edge_target[out]]
        pairs, place = numbered(key)
        taken = largest(place, (dag.edge_taken * dag.edge_element_bytes)[out], len(pairs))
        _, store, readers = np.unique(pairs // count, return_inverse=True, return_counts=True)
        return pairs // count, pairs % count, taken / readers[store]

    def _streams(self) -> tuple[Int64, Int64, Int64]:
        """Return, per scope that streams to other units, its unit, the one that reads most of it, and the bytes."""
        model = self.model
        dag, unit, table = model.dag, model.units.unit, model.stores
        source, target = dag.edge_source, dag.edge_target
        across = np.flatnonzero((unit[source] != NO_UNIT) & (unit[target] != NO_UNIT) & (unit[source] != unit[target]))
        source, target = source[across], target[across]
        pairs, place = numbered(dag.node_scope[source].astype(np.int64) * model.units.count + unit[target])
        once = distinct(place * dag.nodes_count + source)
        pair, task = once // dag.nodes_count, once % dag.nodes_count
        size, maker = sums(pair, table.out_bytes[task], len(pairs)), np.zeros(len(pairs), dtype=np.int64)
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
        kind = 2 * members[before].any(axis=1) + members[after].all(axis=1)  # from the start, to the end, or neither
        order = np.argsort(kind, kind="stable")
        for begin in range(0, len(order), PAIRS):
            pairs = order[begin : begin + PAIRS]
            moved[pairs] = self._moved(members[after[pairs]] & ~members[before[pairs]])
        return moved / self.model.system.dram_gb_per_s

    def _moved(self, inside: Members) -> Column:
        """Return the bytes that some sets of units move at least; what they all move alike is found of one of them."""
        stores = self._stores
        varies = np.zeros(len(stores.whole), np.bool_)
        varies[stores.store[_in_some(inside)[stores.unit]]] = True
        half = len(inside) // 2
        if half and len(inside) * int(varies[stores.store].sum()) > CELLS:
            return np.concatenate([self._moved(inside[:half]), self._moved(inside[half:])])
        found = self._moved_of(varies, inside)
        return found if varies.all() else found + self._moved_of(~varies, inside[:1])

    def _moved_of(self, which: Mask, inside: Members) -> Column:
        """Return the bytes of some stores that each set moves at least: of few of many stores anything."""
        stores = self._stores
        entries = np.flatnonzero(which[stores.store] & np.asarray(inside.any(axis=0))[stores.unit])
        row, place = np.nonzero(inside[:, stores.unit[entries]])
        entry = entries[place]
        touched, group = numbered(row * len(stores.whole) + stores.store[entry])
        row, store = np.divmod(touched, max(len(stores.whole), 1))
        made, taken, readers = (
            np.bincount(group, column[entry], len(touched)) for column in (stores.written, stores.read, stores.read > 0)
        )
        all_written, all_readers = (column[store] for column in self._totals)
        elsewhere = np.where(all_written > 0, all_written - made, stores.whole[store])
        left = np.where((all_written > 0) & ((readers < all_readers) | stores.is_result[store]), made, 0.0)
        # Store by store, so that sums of parts of bytes are the same however many sets there are.
        moved = np.stack([np.minimum(elsewhere, taken), left], axis=1)
        return np.bincount(np.repeat(row, 2), moved.ravel(), len(inside)).astype(float)

    @cached_property
    def _totals(self) -> tuple[Column, Column]:
        """Bytes that are written of each store, and how many units read it."""
        stores = self._stores
        return stores.of_all(stores.written), stores.of_all((stores.read > 0).astype(float))

    def compute_ns(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the time that the tasks of each pair take at least: their work on all cores, or their longest path."""
        chip, units, dag = self.model.system.accelerator, self.model.units, self.model.machine_dag
        task = units.unit != NO_UNIT
        work = sums_over(members, sums(units.unit[task], dag.work[task], units.count).astype(float))
        longest = longest_within(longest_paths(dag, units.unit, units.count), members, before, after)
        cycles = np.maximum((work[after] - work[before]) / chip.cores, longest)
        return np.asarray(cycles / chip.frequency_ghz)

    def network_ns(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the time of the exchanges of each pair."""
        total: Column = sums_over(members, np.array(self.model.network_ns, float))
        return np.asarray(np.maximum(total[after] - total[before], 0.0))

    def fits_dram(self, before: int, units: int) -> bool:
        """Return whether DRAM holds all that is alive while units run after others."""
        capacity = self.model.system.dram_capacity_bytes
        everything = self._stores.whole.sum()
        return not capacity or everything <= capacity or self.live_bytes(before, units) <= capacity

    def live_bytes(self, before: int, units: int) -> int:
        """Return the DRAM bytes alive while units run after others: inputs, weights, results, what waits to be read."""
        stores = self._stores
        done, both = members_of((before, before | units), self.model.units.count).astype(float)
        is_given = stores.of_all(stores.written) == 0
        begun = (stores.of_all(stores.written * both[stores.unit]) > 0) | is_given
        awaited = (stores.of_all(stores.read * (1 - done)[stores.unit]) > 0) | stores.is_result | is_given
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
        # That takes the mean of the units for what is given: what one of them takes at most may be more.
        stores, (store, _, taken) = self._stores, self._taken
        readers = np.bincount(store, minlength=len(stores.whole))
        most, mean = np.zeros((2, len(stores.whole)))
        np.maximum.at(most, store, taken * readers[store])
        np.add.at(mean, store, taken)
        more = np.minimum(stores.whole, most) - np.minimum(stores.whole, mean)
        return ns + float(more[stores.of_all(stores.written) == 0].sum()) / self.model.system.dram_gb_per_s

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

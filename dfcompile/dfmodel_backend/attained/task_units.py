"""The tasks of a canonical DAG, unit by unit: what is never divided between two configurations."""

import hashlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, Kernel
from dfcompile.canonical_dag.analysis import lowest_order
from dfcompile.canonical_dag.dag import Int64, Scope
from dfcompile.canonical_dag.part import OUTSIDE, DagPart, part_of
from dfcompile.dfmodel_backend.attained.stores import StoreTable
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.kernel_sets import predecessors_of
from dfcompile.distinct import distinct, numbered

NO_UNIT = -1


class TaskUnits:
    """The kernels of a canonical DAG, in topological order, with their tasks; sets of them are bit masks.

    Tasks of no kernel form a unit per scope. Kernels that feed one another both ways are one unit.

    Attributes:
        count: number of units.
        names: of the units.
        unit: of each node, `NO_UNIT` for memory, shape [nodes].
        predecessors: of each unit, as sets.
        kernels: names of the kernels, or of the scopes without kernel, of each unit.
        tasks_count: tasks of each unit.
    """

    def __init__(self, dag: CanonicalDag, apart: Sequence[tuple[str, str]] = ()) -> None:
        """Divide the tasks of a canonical DAG into units.

        Args:
            dag: whose tasks these are.
            apart: names of kernels of which the second is in a later configuration than the first.
        """
        group, owners = owners_of(dag)
        names = [owner.name for owner in owners]
        number_of = {name: place for place, name in enumerate(names)}
        later = [(number_of[before], number_of[after]) for before, after in apart]
        follows = sorted({*_follows(dag, group, len(names)), *later})
        order = _topological(len(names), follows)
        number = np.full(len(names) + 1, NO_UNIT, dtype=np.int64)  # the last one is memory's
        for place, members in enumerate(order):
            number[list(members)] = place
        self.count, self.unit = len(order), number[group]
        self.kernels = tuple(tuple(names[member] for member in members) for members in order)
        self.names = tuple(map("+".join, self.kernels))
        numbers = number.tolist()
        ends, not_with = ([(numbers[one], numbers[other]) for one, other in pairs] for pairs in (follows, later))
        self.predecessors = predecessors_of(self.count, [(one, other) for one, other in ends if one != other])
        self._parted = [(unit, others) for unit, others in enumerate(predecessors_of(self.count, not_with)) if others]
        tasks = np.flatnonzero(self.unit != NO_UNIT)
        self._tasks = _split(tasks, self.unit[tasks], self.count)
        self.tasks_count = tuple(map(len, self._tasks))
        units = np.concatenate([self.unit[dag.edge_source], self.unit[dag.edge_target]])
        edges = np.tile(np.arange(dag.edges_count), 2)[units != NO_UNIT]
        self._edges = tuple(map(distinct, _split(edges, units[units != NO_UNIT], self.count)))

    def may_share(self, units: int) -> bool:
        """Return whether a set may be one configuration: nothing in it waits for an exchange of what it makes."""
        return not any(apart & units and units >> unit & 1 for unit, apart in self._parted)

    def members(self, units: int) -> list[int]:
        """Return the numbers of the units of a set, ascending."""
        return np.flatnonzero(members_of((units,), self.count)).tolist()

    def part(self, units: int, dag: CanonicalDag) -> DagPart:
        """Return the tasks of a set as a DAG of their own, of a lowering with these nodes and edges."""
        members = self.members(units)
        tasks = np.sort(np.concatenate([self._tasks[unit] for unit in members]))
        return part_of(dag, tasks, distinct(np.concatenate([self._edges[unit] for unit in members])))


def owners_of(dag: CanonicalDag) -> tuple[Int64, list[Kernel | Scope]]:
    """Return the number of the kernel, or of the scope without kernel, of each task, and these; `NO_UNIT` of memory."""
    numbers: dict[tuple[bool, int], int] = {}
    owners: list[Kernel | Scope] = []
    of_scope = np.full(len(dag.scopes), NO_UNIT, dtype=np.int64)
    for scope in distinct(dag.node_scope[dag.is_computational]).tolist():
        kernel = dag.scopes[scope].kernel
        key = (kernel == NO_KERNEL, scope if kernel == NO_KERNEL else kernel)
        if key not in numbers:
            numbers[key] = len(owners)
            owners.append(dag.scopes[scope] if kernel == NO_KERNEL else dag.kernels[kernel])
        of_scope[scope] = numbers[key]
    return np.where(dag.is_computational, of_scope[dag.node_scope], NO_UNIT), owners


def _follows(dag: CanonicalDag, group: Int64, count: int) -> list[tuple[int, int]]:
    """Return the pairs of groups of which the second reads what the first makes, directly or from memory."""
    source, target = group[dag.edge_source], group[dag.edge_target]
    direct = (source != NO_UNIT) & (target != NO_UNIT) & (source != target)
    pairs = {divmod(pair, count) for pair in distinct(source[direct] * count + target[direct]).tolist()}
    writes = (source != NO_UNIT) & (target == NO_UNIT)
    reads = (source == NO_UNIT) & (target != NO_UNIT)
    written = distinct(dag.edge_target[writes].astype(np.int64) * count + source[writes])
    read = distinct(dag.edge_source[reads].astype(np.int64) * count + target[reads])
    writers: dict[int, list[int]] = {}
    for pair in written.tolist():
        writers.setdefault(pair // count, []).append(pair % count)
    for pair in read.tolist():
        pairs.update((writer, pair % count) for writer in writers.get(pair // count, []) if writer != pair % count)
    return sorted(pairs)


def _topological(count: int, follows: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups in topological order, ties as given; those on a cycle together."""
    ordered = lowest_order(count, *np.array(follows, np.int64).reshape(-1, 2).T)
    if len(ordered) == count:  # there is no cycle
        return [(place,) for place in ordered.tolist()]
    import networkx as nx  # takes a tenth of a second

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(follows)
    merged: nx.DiGraph[int] = nx.condensation(graph)
    members: dict[int, tuple[int, ...]] = {
        place: tuple(sorted(each["members"])) for place, each in merged.nodes.items()
    }
    order = nx.lexicographical_topological_sort(merged, key=lambda place: members[place][0])
    return [members[place] for place in order]


def _split(numbers: Int64, owner: Int64, count: int) -> tuple[Int64, ...]:
    """Return the numbers of each owner."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(1, count))
    return tuple(np.split(numbers[order], starts))[:count]  # of nobody's numbers there is one part, too


class Likeness(Struct, frozen=True, eq=False):
    """What a part is like.

    Attributes:
        key: equal for parts that are alike.
        stores: that the part touches, in an order that parts which are alike share.
    """

    key: bytes
    stores: tuple[int, ...]


def likeness(dag: CanonicalDag, table: StoreTable, part: DagPart, network_ns: float) -> Likeness:
    """Return what the tasks of a part are like.

    Args:
        dag: the lowering, with volumes in elements.
        table: its stores.
        part: in words of the machine.
        network_ns: of the exchanges of its kernels.
    """
    edge, own = part.edge, part.dag
    source, target = dag.edge_source[edge], dag.edge_target[edge]
    into_buffer = dag.is_buffer[target]
    keeper = np.where(into_buffer, target, source)
    stores, store = numbered(dag.node_scope[keeper])
    buffers = table.buffer[distinct(keeper[dag.is_buffer[keeper]])]
    columns = (
        own.kind, own.edge_source, own.edge_target, own.edge_volume,
        part.node == OUTSIDE, into_buffer, dag.is_buffer[source], table.moves_data[edge],
        store, numbered(keeper)[1], numbered(dag.node_scope[target])[1], table.out_bytes[source],
        dag.edge_volume[edge], dag.edge_distinct[edge], dag.edge_element_bytes[edge], dag.edge_order[edge],
        dag.edge_first[edge],
        table.written_bytes[buffers], table.whole_bytes[buffers], table.readers[buffers], table.is_result[buffers],
    )  # fmt: skip
    digest = hashlib.blake2b(repr((network_ns, len(stores), len(buffers), len(edge))).encode(), digest_size=16)
    for column in columns:
        digest.update(column.tobytes())
    return Likeness(digest.digest(), tuple(stores.tolist()))

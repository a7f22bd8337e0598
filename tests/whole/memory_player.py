"""Plays what a mapping says of memory, element by element: where each element of each array is in every cycle.

It enumerates what tasks touch from the loops of the lowering, and knows neither volumes nor what anything saves. What a
task reads it reads in the order of its loops, one word a cycle, somewhere between its start and its end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.canonical_dag.extraction.scopes import Access
from dfcompile.dfmodel_backend import TaskMapping
from dfcompile.dfmodel_backend.attained.holding import KEPT, ROLLING
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE, NOT_HELD

_CYCLES = 400  # of a fetch that are looked at


def elements_of(family: TaskFamily, member: int, access: Access) -> Int64:
    """Return the places that a task touches in an array, in the order of its loops."""
    places = np.array([access.base], dtype=np.int64)
    left = member
    counts = [cut.tasks for cut in family.cuts]
    index = []
    for count in reversed(counts):
        index.append(left % count)
        left //= count
    for cut, at, stride in zip(family.cuts, reversed(index), access.strides, strict=True):
        size = cut.last if at == cut.tasks - 1 else cut.size
        steps = (at * cut.size + np.arange(size, dtype=np.int64)) * stride
        places = np.add.outer(places, steps).reshape(-1)
    return places


@dataclass
class Player:
    """The memories of a chip while a mapping of a lowering runs.

    Attributes:
        flow: of the lowering, whose families the tasks are.
        mapping: that is played.
        sram_bytes: of the chip.
    """

    flow: Flow
    mapping: TaskMapping
    sram_bytes: float
    in_dram: dict[str, set[int]] = field(default_factory=dict)
    read_bytes: int = 0
    written_bytes: int = 0

    def play(self) -> None:
        """Play all configurations; nothing may be read that is not there, and no more be held than SRAM has."""
        dag = self.mapping.dag
        self.families = {family.scope.name: family for family in self.flow.families}
        written = {access.array for family in self.flow.families for access in family.scope.writes}
        for name, use in self.flow.uses.items():
            if name not in written:
                self.in_dram[name] = set(range(use.array.elements))
        self.accesses = dict(self._edge_accesses())
        self.starts = self.mapping.schedule.start.tolist()
        self.ends = self.mapping.schedule.last_out.tolist()
        self.is_task = dag.is_computational
        for place in range(len(self.mapping.configurations)):
            _Configuration(self, place).play()

    def _edge_accesses(self) -> Iterator[tuple[int, Access]]:
        """Yield the access behind each edge of a buffer: those of a task come in the order of its operands."""
        dag = self.mapping.dag
        taken: dict[tuple[int, int], int] = {}
        for edge in range(dag.edges_count):
            source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
            reads = bool(dag.is_buffer[source])
            if not reads and not dag.is_buffer[target]:
                continue
            buffer, task = (source, target) if reads else (target, source)
            array = dag.scopes[dag.node_scope[buffer]].origin
            family = self.families[dag.scopes[dag.node_scope[task]].name]
            number = self.flow.families.index(family)
            use = self.flow.uses[array]
            side = family.scope.reads if reads else family.scope.writes
            own = [
                access
                for access in side
                if access.array == array and (not reads or use.stream_of(number, access) is None)
            ]
            place = taken.get((source, target), 0)
            taken[source, target] = place + 1
            yield edge, own[place]

    def touched(self, edge: int) -> Int64:
        """Return the places that an edge carries, in order; of what a task hands to another their numbers."""
        dag = self.mapping.dag
        if edge not in self.accesses:
            return np.arange(int(dag.edge_volume[edge]))
        source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
        task = source if self.is_task[source] else target
        family = self.families[dag.scopes[dag.node_scope[task]].name]
        return elements_of(family, max(int(dag.node_member[task]), 0), self.accesses[edge])


class _Configuration:
    def __init__(self, player: Player, place: int) -> None:
        self._player, self._place = player, place
        self._found = player.mapping.configurations[place]
        self._dag = player.mapping.dag
        residency = self._found.residency
        self._fetch = dict(zip(residency.edge.tolist(), residency.fetch.tolist(), strict=True))
        self._way = residency.way.tolist()
        self._changes: list[tuple[int, int]] = []

    def play(self) -> None:
        player, dag = self._player, self._dag
        before = player.read_bytes + player.written_bytes
        inside = np.zeros(dag.nodes_count, dtype=np.bool_)
        part = self._found.part
        inside[part.node[part.dag.is_computational]] = True
        reads: dict[str, list[int]] = {}
        writes: dict[str, list[int]] = {}
        for edge, fetch in self._fetch.items():
            source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
            name = self._name(target if dag.is_buffer[target] else source)
            if inside[target]:
                reads.setdefault(name, []).append(edge)
            if inside[source]:
                writes.setdefault(name, []).append(edge)
            assert fetch >= HELD_WHOLE
        for edge in np.flatnonzero(player.mapping.schedule.streamed).tolist():
            if inside[dag.edge_source[edge]]:
                self._put_fifo(edge)
        # What is written is there before it is read: schedules were checked for that.
        for name, edges in writes.items():
            self._write(name, edges, reads.get(name, []))
        for name, edges in reads.items():
            self._read(name, edges, writes.get(name, []))
        held = most = 0
        for _, change in sorted(self._changes):
            held += change
            most = max(most, held)
        assert most <= self._found.sram_bytes <= player.sram_bytes
        moved = player.read_bytes + player.written_bytes - before
        assert moved == self._found.dram_bytes
        assert math.isclose(moved / player.mapping.system.dram_gb_per_s, self._found.memory_ns, rel_tol=1e-12)

    def _name(self, node: int) -> str:
        name = self._dag.node_name(node)
        return self._dag.scopes[self._dag.node_scope[node]].origin if self._dag.is_buffer[node] else f"task {name}"

    def _put_fifo(self, edge: int) -> None:
        dag, mapping = self._dag, self._player.mapping
        width = -(-int(dag.edge_volume[edge]) // int(mapping.machine_dag.edge_volume[edge]))
        size = int(mapping.schedule.fifo_capacity[edge]) * width * int(dag.edge_element_bytes[edge])
        source = int(dag.edge_source[edge])
        begin, end = self._player.starts[source], self._player.ends[int(dag.edge_target[edge])]
        self._put(begin, max(end, begin), size)

    def _put(self, begin: int, end: int, size: int) -> None:
        self._changes += ((begin, size), (end, -size))

    def _times(self, edges: list[int], *, of_writers: bool = False) -> list[tuple[int, int]]:
        ends = self._dag.edge_source if of_writers else self._dag.edge_target
        nodes = [int(ends[edge]) for edge in edges]
        return [(self._player.starts[node], self._player.ends[node]) for node in nodes]

    def _is_whole(self, edges: list[int]) -> bool:
        return bool(edges) and self._fetch[edges[0]] == HELD_WHOLE

    def _size(self, edges: list[int]) -> int:
        return int(self._dag.edge_element_bytes[edges[0]])

    def _write(self, name: str, edges: list[int], readers: list[int]) -> None:
        """Put what tasks write into DRAM, unless it is held and nobody needs it elsewhere."""
        player = self._player
        made = [player.touched(edge) for edge in edges]
        if name.startswith("task "):  # what a task hands to several is written once
            made = [max(made, key=len)]
        is_needed = self._is_needed_elsewhere(name, edges, readers)
        if self._is_whole(edges) and not is_needed:
            player.in_dram.pop(name, None)
            return
        for places in made:
            distinct = set(places.tolist())
            player.in_dram.setdefault(name, set()).update(distinct)
            player.written_bytes += len(distinct) * self._size(edges)

    def _is_needed_elsewhere(self, name: str, edges: list[int], readers: list[int]) -> bool:
        dag = self._dag
        node = int(dag.edge_source[edges[0]]) if name.startswith("task ") else int(dag.edge_target[edges[0]])
        task = self._player.is_task
        away = [
            edge
            for edge in np.flatnonzero(dag.edge_source == node).tolist()
            if task[dag.edge_target[edge]] and edge not in readers and not self._player.mapping.schedule.streamed[edge]
        ]
        is_output = any(tensor.name == name and tensor.role == "output" for tensor in dag.tensors)
        return is_output or bool(away) or (not readers and bool(dag.is_buffer[node]))

    def _read(self, name: str, edges: list[int], writers: list[int]) -> None:
        player = self._player
        size = self._size(edges)
        stored = player.in_dram.get(name, set())
        if self._is_whole(edges):
            made = {place for edge in writers for place in player.touched(edge).tolist()}
            needed = {place for edge in edges for place in player.touched(edge).tolist()}
            assert needed - made <= stored, f"{name}: what is held was never there"
            fetched = self._found_fetched(name)
            times = self._times(edges) + self._times(writers, of_writers=True)
            held = sum(len(set(player.touched(edge).tolist())) for edge in self._once(name, writers)) * size + fetched
            sizes = [tensor.size_bytes for tensor in self._dag.tensors if tensor.name == name]
            held = min([held, *sizes])  # what is written over takes no more than what it is written over
            assert len(needed | made) * size <= held
            self._put(min(begin for begin, _ in times), max(end for _, end in times), held)
            player.read_bytes += fetched
            return
        fetches: dict[int, list[int]] = {}
        for edge in edges:
            places = player.touched(edge)
            assert set(places.tolist()) <= stored, f"{name}: read from DRAM, where it is not"
            if self._fetch[edge] == NOT_HELD:
                player.read_bytes += len(places) * size
            else:
                fetches.setdefault(self._fetch[edge], []).append(edge)
        for number, own in fetches.items():
            self._play_fetch(own, self._way[number], size)

    def _once(self, name: str, writers: list[int]) -> list[int]:
        """Return the edges over which something is written: of what a task hands to several the largest."""
        if not name.startswith("task "):
            return writers
        return sorted(writers, key=lambda edge: -int(self._dag.edge_volume[edge]))[:1]

    def _found_fetched(self, name: str) -> int:
        """Return the bytes that are brought of a store which is held whole: as it says, no more than are read of it."""
        return next((store.fetched for store in self._found.stores if store.name == name), 0)

    def _play_fetch(self, edges: list[int], way: int, size: int) -> None:
        player = self._player
        sequences = [player.touched(edge) for edge in edges]
        times = self._times(edges)
        begin, end = min(first for first, _ in times), max(last for _, last in times)
        brought = int(self._dag.edge_distinct[edges[0]])
        assert len({place for places in sequences for place in places.tolist()}) <= brought, "read, and not brought"
        if way == KEPT:
            self._put(begin, end, brought * size)
            player.read_bytes += brought * size
            return
        assert all(np.array_equal(other, sequences[0]) for other in sequences), "a shared stream of several orders"
        sequence = sequences[0] if way == ROLLING else np.arange(len(sequences[0]))  # read again is brought again
        player.read_bytes += len(set(sequence.tolist())) * size
        self._put(begin, end, self._most_needed(sequence, edges) * size)

    def _most_needed(self, sequence: Int64, edges: list[int]) -> int:
        """Return the most elements that were brought and are needed again, if readers go on in the worst way.

        Each may read as early as it can or as late as it may, and a word as soon as the one before.
        """
        dag, machine = self._dag, self._player.mapping.machine_dag
        word = -(-int(dag.edge_volume[edges[0]]) // int(machine.edge_volume[edges[0]]))
        work = int(machine.work[dag.edge_target[edges[0]]])
        times = self._times(edges)
        start, end = (np.array(column)[:, None] for column in zip(*times, strict=True))
        cycles = np.unique(np.linspace(start.min(), end.max() - 1, _CYCLES).astype(np.int64))[None, :]
        furthest = np.clip(cycles - start + 1, 0, work).max(axis=0) * word
        last = np.clip(cycles - (end - work), 0, work).min(axis=0) * word
        if len(edges) == 1:  # what a task reads is taken from DRAM as it goes on
            last = np.maximum(last, furthest - word)
        _, begins = np.unique(sequence, return_index=True)
        ends = np.sort(len(sequence) - 1 - np.unique(sequence[::-1], return_index=True)[1])
        begins = np.sort(begins)
        needed = np.searchsorted(begins, furthest) - np.searchsorted(ends, last + (word if len(edges) == 1 else 0))
        return int(np.maximum(needed, 0).max())

"""Plays a mapping, element by element: where each element of each array is in every cycle, and when each task runs.

It enumerates what tasks touch from the loops of the lowering, and knows neither volumes nor what anything saves. What a
task reads it reads in the order of its loops, one word a cycle, somewhere between its start and its end; what it writes
is there when it has ended. Starts and ends are those of a replay of its own (`element_replay`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dfcompile.canonical_dag import TensorRole
from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.canonical_dag.extraction.scopes import Access
from dfcompile.dfmodel_backend import TaskMapping
from dfcompile.dfmodel_backend.attained.holding import KEPT, ROLLING
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE, NOT_HELD
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.lowering.levels import graph_of
from dfcompile.study import Point
from tests.whole.element_replay import replayed

_CYCLES = 400  # of a fetch that are looked at
_NEVER = np.iinfo(np.int64).max  # the cycle from which an element is there that nobody makes
_EXACT = 1e-12  # relative: of sums of a few times


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
        in_dram: the cycle from which DRAM has each element, by array; of what a task hands on by its name.
    """

    flow: Flow
    mapping: TaskMapping
    sram_bytes: float
    in_dram: dict[str, Int64] = field(default_factory=dict)
    read_bytes: int = 0
    written_bytes: int = 0
    most_held: int = 0  # bytes of SRAM

    def play(self) -> None:
        """Play all configurations; nothing may be read that is not there, and no more be held than SRAM has.

        Bytes and cycles have to be those that the mapping says.

        Raises:
            AssertionError: with what is otherwise.
        """
        mapping, dag = self.mapping, self.mapping.dag
        self.families = {family.scope.name: family for family in self.flow.families}
        written = {access.array for family in self.flow.families for access in family.scope.writes}
        for name, use in self.flow.uses.items():
            self.in_dram[name] = np.full(use.array.elements, _NEVER if name in written else -1)
        self.accesses = dict(self._edge_accesses())
        self.is_task = dag.is_computational
        self.starts, self.ends = (np.full(dag.nodes_count, -1, dtype=np.int64) for _ in range(2))
        self._touched: dict[int, Int64] = {}
        began = 0
        for found in mapping.configurations:
            began = self._run(found, began)
            _Configuration(self, found).play()
        for name, made in self._results().items():
            assert (self.in_dram[name][made] <= began).all(), f"{name}: a result that is not in DRAM"
        assert began == mapping.schedule.makespan_cycles
        assert (self.starts[self.is_task] == mapping.schedule.start[self.is_task]).all()
        assert (self.ends[self.is_task] == mapping.schedule.last_out[self.is_task]).all()
        assert self.read_bytes + self.written_bytes == mapping.dram_bytes
        assert mapping.sram_bytes == max((found.sram_bytes for found in mapping.configurations), default=0)
        time_ns = sum(max(found.compute_ns, found.memory_ns) for found in mapping.configurations)
        assert math.isclose(mapping.time_s * 1e9, time_ns, rel_tol=_EXACT)

    def _run(self, found: TaskConfiguration, began: int) -> int:
        """Note when the tasks of a configuration start and have ended; return the cycle in which it has ended."""
        task = np.flatnonzero(found.part.dag.is_computational)
        nodes = found.part.node[task]
        assert (self.ends[nodes] < 0).all(), "a task runs twice"
        starts, ends = (np.array(column, dtype=np.int64)[task] for column in replayed(found.part.dag, found.schedule))
        self.starts[nodes], self.ends[nodes] = began + starts, began + ends
        cycles = int(ends.max(initial=0))
        chip = self.mapping.system.accelerator
        assert found.cycles == cycles, f"{found.kernels}: {cycles} cycles against {found.cycles}"
        assert found.schedule.pes <= chip.cores
        assert math.isclose(found.compute_ns, cycles / chip.frequency_ghz, rel_tol=_EXACT)
        return began + cycles

    def _results(self) -> dict[str, Int64]:
        """Return what of each output of the model tasks make."""
        outputs = {tensor.name for tensor in self.mapping.dag.tensors if tensor.role is TensorRole.OUTPUT}
        made = defaultdict(list)
        for edge, access in self.accesses.items():
            if access.array in outputs and self.is_task[self.mapping.dag.edge_source[edge]]:
                made[access.array].append(self.touched(edge))
        return {name: np.concatenate(places) for name, places in made.items()}

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
        if edge not in self._touched:
            self._touched[edge] = self._found(edge)
        return self._touched[edge]

    def _found(self, edge: int) -> Int64:
        dag = self.mapping.dag
        if edge not in self.accesses:
            return np.arange(int(dag.edge_volume[edge]))
        source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
        task = source if self.is_task[source] else target
        family = self.families[dag.scopes[dag.node_scope[task]].name]
        return elements_of(family, max(int(dag.node_member[task]), 0), self.accesses[edge])


def player_of(point: Point) -> Player:
    """Return the player of what a run mapped on one chip."""
    variant = point.variant
    flow = flow_of(graph_of(variant.lowered), variant.extraction)
    return Player(flow, point.attained, point.sram_bytes or math.inf)


class _Configuration:
    """What is in SRAM and moves while a configuration runs: a keeper is a buffer, or a task that hands on."""

    def __init__(self, player: Player, found: TaskConfiguration) -> None:
        self._player, self._found = player, found
        self._dag = player.mapping.dag
        residency = found.residency
        self._fetch = dict(zip(residency.edge.tolist(), residency.fetch.tolist(), strict=True))
        self._way = residency.way.tolist()
        self._changes: list[tuple[int, int]] = []
        self._loaded, self._stored = Counter[str](), Counter[str]()  # bytes, by store
        self._at_least = Counter[str]()  # bytes of stores that are held whole, which are brought
        self._at_most = Counter[str]()

    def play(self) -> None:
        player, dag, found = self._player, self._dag, self._found
        inside = np.zeros(dag.nodes_count, dtype=np.bool_)
        inside[found.part.node[found.part.dag.is_computational]] = True
        reads, writes = (defaultdict[int, list[int]](list) for _ in range(2))  # by keeper
        for edge, fetch in self._fetch.items():
            source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
            keeper = target if dag.is_buffer[target] else source
            assert fetch >= HELD_WHOLE
            if inside[target]:
                reads[keeper].append(edge)
            if inside[source]:
                writes[keeper].append(edge)
        through_memory = ~player.mapping.schedule.streamed & (inside[dag.edge_source] | inside[dag.edge_target])
        real = player.is_task | dag.is_buffer
        moving = np.flatnonzero(through_memory & real[dag.edge_source] & real[dag.edge_target])
        assert sorted(self._fetch) == moving.tolist(), "an edge of which nothing is said"
        for edge in np.flatnonzero(player.mapping.schedule.streamed & inside[dag.edge_source]).tolist():
            assert inside[dag.edge_target[edge]], "a stream that leaves the configuration"
            self._put_fifo(edge)
        on_chip = {keeper: self._write(keeper, edges, reads.get(keeper, [])) for keeper, edges in writes.items()}
        for keeper, own in reads.items():
            self._read(keeper, own, writes.get(keeper, []), on_chip.get(keeper))
        self._check_sram()
        self._check_stores()
        moved = sum(store.dram_bytes for store in found.stores)
        assert moved == found.dram_bytes
        assert math.isclose(moved / player.mapping.system.dram_gb_per_s, found.memory_ns, rel_tol=_EXACT)

    def _check_sram(self) -> None:
        held = most = 0
        for _, change in sorted(self._changes):
            held += change
            most = max(most, held)
        assert most <= self._found.sram_bytes, f"{most} bytes of SRAM against {self._found.sram_bytes}"
        assert self._found.sram_bytes <= self._player.sram_bytes
        self._player.most_held = max(self._player.most_held, most)

    def _check_stores(self) -> None:
        """Check the bytes of each store; what is held whole may bring more of an array than is needed of it."""
        stores = {store.name: store for store in self._found.stores}
        assert {*self._loaded, *self._stored, *self._at_most} <= stores.keys()
        for name, store in stores.items():
            assert store.dram_write_bytes == self._stored[name], f"{name}: stores"
            brought = store.dram_read_bytes - self._loaded[name]
            assert self._at_least[name] <= brought <= self._at_most[name], f"{name}: loads"
            self._player.read_bytes += store.dram_read_bytes
            self._player.written_bytes += store.dram_write_bytes

    def _array(self, keeper: int) -> str:
        """Return the name under which DRAM has what a keeper has."""
        name = self._dag.node_name(keeper)
        return self._dag.scopes[self._dag.node_scope[keeper]].origin if self._dag.is_buffer[keeper] else f"task {name}"

    def _store(self, keeper: int) -> str:
        name: str = self._dag.scopes[self._dag.node_scope[keeper]].name
        return name

    def _put_fifo(self, edge: int) -> None:
        dag, mapping = self._dag, self._player.mapping
        width = -(-int(dag.edge_volume[edge]) // int(mapping.machine_dag.edge_volume[edge]))
        size = int(mapping.schedule.fifo_capacity[edge]) * width * int(dag.edge_element_bytes[edge])
        source = int(dag.edge_source[edge])
        begin, end = int(self._player.starts[source]), int(self._player.ends[dag.edge_target[edge]])
        self._put(begin, max(end, begin), size)

    def _put(self, begin: int, end: int, size: int) -> None:
        self._changes += ((begin, size), (end, -size))

    def _times(self, edges: Sequence[int], *, of_writers: bool = False) -> list[tuple[int, int]]:
        ends = self._dag.edge_source if of_writers else self._dag.edge_target
        nodes = [int(ends[edge]) for edge in edges]
        return [(int(self._player.starts[node]), int(self._player.ends[node])) for node in nodes]

    def _is_whole(self, edges: Sequence[int]) -> bool:
        flags = {self._fetch[edge] == HELD_WHOLE for edge in edges}
        assert len(flags) <= 1, "held whole, and not"
        return flags == {True}

    def _size(self, edges: Sequence[int]) -> int:
        return int(self._dag.edge_element_bytes[edges[0]])

    def _write(self, keeper: int, edges: list[int], readers: list[int]) -> Int64:
        """Put what tasks write into DRAM, unless it is held and nobody needs it elsewhere.

        Returns:
            From which cycle on each element is there, of those that are made here.
        """
        player, name = self._player, self._array(keeper)
        if not self._dag.is_buffer[keeper]:  # what a task hands to several is written once
            edges = [max(edges, key=lambda edge: len(player.touched(edge)))]
            player.in_dram.setdefault(name, np.full(len(player.touched(edges[0])), _NEVER))
        there = np.full(len(player.in_dram[name]), -1, dtype=np.int64)
        stays = self._is_whole([*edges, *readers]) and not self._is_needed_elsewhere(keeper, readers)
        for edge in edges:
            places = player.touched(edge)
            there[places] = np.maximum(there[places], player.ends[self._dag.edge_source[edge]])
            self._stored[self._store(keeper)] += 0 if stays else len(np.unique(places)) * self._size(edges)
        there[there < 0] = _NEVER
        if not stays:
            made = there < _NEVER
            player.in_dram[name][made] = there[made]
        return there

    def _is_needed_elsewhere(self, keeper: int, readers: list[int]) -> bool:
        dag = self._dag
        away = [
            edge
            for edge in np.flatnonzero(dag.edge_source == keeper).tolist()
            if self._player.is_task[dag.edge_target[edge]]
            and edge not in readers
            and not self._player.mapping.schedule.streamed[edge]
        ]
        is_output = any(tensor.name == self._array(keeper) and tensor.role == "output" for tensor in dag.tensors)
        return is_output or bool(away) or (not readers and bool(dag.is_buffer[keeper]))

    def _read(self, keeper: int, edges: list[int], writers: list[int], made: Int64 | None) -> None:
        player, name, size = self._player, self._array(keeper), self._size(edges)
        stored = player.in_dram.get(name, np.zeros(0, dtype=np.int64))
        is_whole = self._is_whole([*edges, *writers])
        there = np.minimum(stored, made) if is_whole and made is not None else stored
        for edge in edges:
            places, start = player.touched(edge), player.starts[self._dag.edge_target[edge]]
            assert (there[places] <= start).all(), f"{name}: read before it is there"
        if is_whole:
            self._hold_whole(keeper, edges, writers, made)
            return
        fetches = defaultdict[int, list[int]](list)
        for edge in edges:
            if self._fetch[edge] == NOT_HELD:
                self._loaded[self._store(keeper)] += len(player.touched(edge)) * size
            else:
                fetches[self._fetch[edge]].append(edge)
        for number, own in fetches.items():
            self._loaded[self._store(keeper)] += self._play_fetch(own, self._way[number], size)

    def _hold_whole(self, keeper: int, edges: list[int], writers: list[int], made: Int64 | None) -> None:
        """Hold from the first access to the last what is read or made."""
        needed = np.unique(np.concatenate([self._player.touched(edge) for edge in edges]))
        here = np.zeros(0, dtype=np.int64) if made is None else np.flatnonzero(made < _NEVER)
        times = self._times(edges) + self._times(writers, of_writers=True)
        size, store = self._size(edges), self._store(keeper)
        held = len(np.union1d(needed, here)) * size
        self._put(min(begin for begin, _ in times), max(end for _, end in times), held)
        self._at_least[store] += len(np.setdiff1d(needed, here)) * size
        reads = sum(len(self._player.touched(edge)) for edge in edges)
        self._at_most[store] += min(reads, len(self._player.in_dram[self._array(keeper)])) * size

    def _play_fetch(self, edges: list[int], way: int, size: int) -> int:
        """Hold what is fetched for some tasks, and return the bytes that are loaded."""
        sequences = [self._player.touched(edge) for edge in edges]
        times = self._times(edges)
        begin, end = min(first for first, _ in times), max(last for _, last in times)
        brought = int(self._dag.edge_distinct[edges[0]])
        assert len(np.unique(np.concatenate(sequences))) <= brought, "read, and not brought"
        if way == KEPT:
            self._put(begin, end, brought * size)
            return brought * size
        assert all(np.array_equal(other, sequences[0]) for other in sequences), "a shared stream of several orders"
        sequence = sequences[0] if way == ROLLING else np.arange(len(sequences[0]))  # read again is brought again
        self._put(begin, end, self._most_needed(sequence, edges) * size)
        return len(np.unique(sequence)) * size

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

"""Every way to lower and divide a small model, each with the time that its mapping takes on a machine.

Ways are all named expansions of all operators, parametric ones with every value, each in as many pieces as its loops
can be cut into. Those whose work, longest chain or traffic alone takes as long as a given time are left out; of that
nothing here asks what chooses or bounds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.extraction.families import divided
from dfcompile.canonical_dag.extraction.scopes import Access, LoweredGraph, MapScope
from dfcompile.dfmodel_backend import Overlap, System, TaskModel
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.errors import UserError
from dfcompile.frontend import CANONICAL, ONNX, ChosenExpansion, Program
from dfcompile.lowering import ExpansionTable, lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.lowering.alternatives.outlined import Outline, OutlinedModel
from dfcompile.options import Choice, Effort, Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.options import QUICK_PARTITION

_MOST_WAYS = 8_000  # of a model whose tasks are looked at
_GUESSED = 1 / 8  # of what tasks read and write, that is moved: no more than the order in which ways are mapped
_ROUNDING = 1e-9  # of times


@dataclass(frozen=True, slots=True)
class Way:
    """A way to lower and divide one operator of the user.

    Attributes:
        choices: of its expansions, level after level.
        pieces: of each of its scopes; ``None``: as declared.
        work: cycles of all its tasks.
        longest: cycles of the longest one.
    """

    choices: tuple[Choice, ...]
    pieces: int | None
    work: int
    longest: int


@dataclass(frozen=True, slots=True)
class Found:
    """A way to lower and divide a model, and the time of its mapping in seconds."""

    choices: tuple[Choice, ...]
    granularity: Granularity
    time_s: float

    def line(self, pes: int) -> str:
        """Return it as a line of a file that ``--choice`` takes."""
        expand = " ".join(f"--expand {choice}" for choice in self.choices)
        own = (f"{origin}:{'declared' if n is None else f'pieces={n}'}" for origin, n in self.granularity.own)
        return f"--pes {pes} {expand} --granularity declared {' '.join(f'--granularity {each}' for each in own)}\n"


class BruteForce:
    """All ways to lower and divide a model.

    Attributes:
        ways: of each operator of the user, by its name.
    """

    def __init__(self, program: Program) -> None:
        self._program, self._table = program, registered_expansions()
        self._model = OutlinedModel(program, self._table)
        first = self._outline(())
        assert first is not None
        origins = dict.fromkeys(scope.origin for scope in first.graph.scopes)
        self.ways = {origin: tuple(self._ways(origin, first.chosen)) for origin in origins}

    @property
    def size(self) -> int:
        """Number of all ways."""
        return prod(map(len, self.ways.values()))

    def _outline(self, choices: tuple[Choice, ...]) -> Outline | None:
        try:
            return self._model.outline(choices)
        except UserError:
            return None

    def _ways(self, origin: str, known: Sequence[ChosenExpansion]) -> Iterator[Way]:
        """Yield the ways of an operator; of several that give the same tasks the first."""
        seen = set[object]()
        for outer in _combinations(self._table, ONNX, origin, known):
            outline = self._outline(outer)
            if outline is None:
                continue
            for inner in _combinations(self._table, CANONICAL, origin, outline.chosen):
                lowered = self._outline((*outer, *inner))
                if lowered is None:
                    continue
                scopes = tuple(scope for scope in lowered.graph.scopes if scope.origin == origin)
                for pieces in (None, *range(1, max(prod(scope.extents) for scope in scopes) + 1)):
                    families = tuple(divided(scope, pieces) for scope in scopes)
                    told = tuple(map(_told(lowered.graph), scopes)), tuple(family.cuts for family in families)
                    if told not in seen:
                        seen.add(told)
                        tasks = [family.iterations() for family in families]
                        longest = max(max(each.whole, each.last) for each in tasks)
                        yield Way((*outer, *inner), pieces, sum(each.total for each in tasks), longest)

    def shortest_first(self, system: System, time_s: float) -> Iterator[tuple[Way, ...]]:
        """Yield a way for each operator, all combinations whose least work and longest task take less than a time."""
        pes, most_cycles = system.accelerator.cores, time_s * 1e9 * system.accelerator.frequency_ghz * (1 - _ROUNDING)
        ordered = [sorted(ways, key=lambda way: way.work) for ways in self.ways.values()]
        rest = [sum(ways[0].work for ways in ordered[at:]) for at in range(len(ordered) + 1)]

        def completed(taken: tuple[Way, ...], work: int) -> Iterator[tuple[Way, ...]]:
            at = len(taken)
            if at == len(ordered):
                yield taken
                return
            for way in ordered[at]:
                if ceil((work + way.work + rest[at + 1]) / pes) >= most_cycles:
                    return
                if way.longest < most_cycles:
                    yield from completed((*taken, way), work + way.work)

        return completed((), 0)

    def choices(self, ways: Sequence[Way]) -> tuple[Choice, ...]:
        """Return the expansions of a way for each operator."""
        return tuple(choice for way in ways for choice in way.choices)

    def lowered(self, ways: Sequence[Way]) -> tuple[CanonicalDag, LoweredGraph] | None:
        """Return the tasks of a model, and the scopes that they come of."""
        outline = self._outline(self.choices(ways))
        if outline is None:
            return None
        options = ExtractionOptions(granularity=self.granularity(ways))
        return extract_graph(outline.graph, options, parameters=tuple(self._program.parameters)), outline.graph

    def dag(self, ways: Sequence[Way]) -> CanonicalDag:
        """Return the tasks as the model is compiled, with kernels, which no mapping parts."""
        choices = self.choices(ways)
        nests = lower_to_nests(lower_to_canonical(self._program, self._table, choices), self._table, choices)
        options = ExtractionOptions(granularity=self.granularity(ways))
        return extract_graph(nests.graph, options, parameters=tuple(nests.parameters))

    def granularity(self, ways: Sequence[Way]) -> Granularity:
        """Return the pieces of a way for each operator."""
        return Granularity(own=tuple(zip(self.ways, (way.pieces for way in ways), strict=True)))

    def faster(self, system: System, time_s: float, most: int) -> tuple[Found | None, bool]:
        """Return the fastest mapping that takes less than a time, if one does, and whether all were looked at.

        Args:
            system: machine of one chip.
            time_s: in seconds.
            most: ways that are mapped, those first that look best.
        """
        candidates = []
        for number, ways in enumerate(self.shortest_first(system, time_s)):
            if number == _MOST_WAYS:
                return None, False
            lowered = self.lowered(ways)
            if lowered is not None and _is_less(least := least_time(*lowered, system), time_s):
                moved = int((lowered[0].edge_distinct * lowered[0].edge_element_bytes).sum())
                candidates.append((least + _GUESSED * moved / system.dram_gb_per_s / 1e9, number, least, ways))
        best: Found | None = None
        looks = 0
        for _, _, least, ways in sorted(candidates, key=lambda each: each[:2]):
            if not _is_less(least, time_s if best is None else best.time_s):
                continue
            if looks == most:
                return best, False
            looks += 1
            taken = mapped_time(self.dag(ways), system)
            if _is_less(taken, time_s if best is None else best.time_s):
                best = Found(self.choices(ways), self.granularity(ways), taken)
        return best, True


def _is_less(time_s: float, other_s: float) -> bool:
    return time_s < other_s * (1 - _ROUNDING)


def _combinations(
    table: ExpansionTable, dialect: str, origin: str, known: Sequence[ChosenExpansion]
) -> Iterator[tuple[Choice, ...]]:
    """Yield all names of all types of an operator that offer several."""
    types = dict.fromkeys(each.op_type for each in known if each.origin == origin)
    names = {op_type: tuple(table.by_operator.get((dialect, op_type), {})) for op_type in types}
    several = ([Choice(op_type, name, origin) for name in each] for op_type, each in names.items() if len(each) > 1)
    return product(*several)


def _told(graph: LoweredGraph) -> Callable[[MapScope], object]:
    """Return what tells of a scope which tasks it becomes."""

    def told(scope: MapScope) -> object:
        accesses = (*scope.reads, *scope.writes)
        kept = tuple(graph.arrays[access.array].is_materialised for access in accesses)
        return scope.extents, scope.is_spatial, scope.reads, scope.writes, kept

    return told


def least_time(dag: CanonicalDag, graph: LoweredGraph, system: System) -> float:
    """Return seconds that no mapping of tasks takes less than."""
    compute_ns = least_cycles(dag, system.accelerator.cores) / system.accelerator.frequency_ghz
    return max(compute_ns, least_bytes(graph) / system.dram_gb_per_s) / 1e9


def least_cycles(dag: CanonicalDag, pes: int) -> int:
    """Return what no schedule of tasks takes less than: their work, shared by all, or a chain of them.

    Through memory a task begins after the end of another one, along a stream it begins and ends one cycle later.
    """
    computes: list[bool] = dag.is_computational.tolist()
    volumes = zip(dag.volume_in.tolist(), dag.volume_out.tolist(), computes, strict=True)
    work: list[int] = [max(taken, given) if is_task else 0 for taken, given, is_task in volumes]
    before: list[list[int]] = [[] for _ in work]
    after: list[list[int]] = [[] for _ in work]
    for source, target in zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True):
        before[target].append(source)
        after[source].append(target)
    start, end = [0] * len(work), [0] * len(work)
    missing = list(map(len, before))
    ready = [node for node, count in enumerate(missing) if not count]
    while ready:
        node = ready.pop()
        for other in before[node]:
            streams = computes[other] and computes[node]
            start[node] = max(start[node], start[other] + 1 if streams else end[other])
            end[node] = max(end[node], end[other] + streams)
        end[node] = max(end[node], start[node] + work[node])
        for other in after[node]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return max(ceil(sum(work) / pes), *end)


def least_bytes(graph: LoweredGraph) -> int:
    """Return the bytes of what is read and not made, and of results: each element of them is moved once at least."""
    touched: dict[str, set[int]] = {}
    written = {access.array for scope in graph.scopes for access in scope.writes}
    read = {access.array for scope in graph.scopes for access in scope.reads}
    for scope in graph.scopes:
        for access in (*scope.reads, *scope.writes):
            name = access.array
            is_moved = name not in written if name in read else not graph.arrays[name].is_transient
            if is_moved and not access.is_indirect:
                touched.setdefault(name, set()).update(_places(access, scope.extents))
    return sum(len(places) * graph.arrays[name].element_bytes for name, places in touched.items())


def _places(access: Access, extents: Sequence[int]) -> list[int]:
    places = np.array([access.base])
    for extent, stride in zip(extents, access.strides, strict=True):
        places = np.unique(np.add.outer(places, stride * np.arange(extent if stride else 1)))
    return [int(place) for place in places]


def mapped_time(dag: CanonicalDag, system: System) -> float:
    """Return the seconds that a mapping of tasks takes on one chip, as ``dfcompile MODEL`` makes it."""
    return map_tasks(tasks_of(dag, system)).time_s


def tasks_of(dag: CanonicalDag, system: System) -> TaskModel:
    """Return what is mapped: the tasks of a DAG, and a chip."""
    scheduling = ScheduleOptions(system.accelerator.cores, "best", timing=Timing.STEADY, effort=Effort.QUICK)
    planning = replace(scheduling, partition=QUICK_PARTITION)
    return TaskModel(dag, system, scheduling, planning, Overlap.PERFECT_OVERLAP)

"""What parts of the space take at least, and what single lowerings are estimated to take."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily, divide
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.choosing.estimate import estimate
from dfcompile.exploration.asked import Asked, Figures, figures_of
from dfcompile.exploration.space import Space
from dfcompile.lowering.alternatives.bound import divided_bound, expansion_bound
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Volumes


class Bounds:
    """Bounds of parts of a space; each is found once."""

    def __init__(self, asked: Asked, space: Space, outlined: OutlinedModel) -> None:
        """Look at the options of all groups.

        Args:
            asked: of the user.
            space: of expansions.
            outlined: the model.
        """
        self._asked, self._space, self._outlined = asked, space, outlined
        self._io = [_LeastIo(space, outlined, granularity, asked.memories) for granularity in asked.granularities]
        self._makespans: dict[tuple[Sequence[int | None], int, int, bool], int] = {}

    def of(self, picks: Sequence[int | None], granularity: int, pes: int) -> tuple[Figures, ...]:
        """Return what every lowering takes at least for which some groups have one option, for each memory.

        Args:
            picks: option of each group, or any.
            granularity: number of it.
            pes: number of processing elements.
        """
        return self._figures(self._makespan(picks, granularity, pes), self._io[granularity].of(picks), pes)

    def estimated(self, picks: Sequence[int], granularity: int, pes: int) -> tuple[Figures, ...]:
        """Return what a lowering is estimated to take, for each memory: its makespan; of I/O what is sure."""
        graph = self._outlined.outline(self._space.choices(picks)).graph
        cycles = estimated_cycles(graph, self._asked.granularities[granularity], pes)
        return self._figures(cycles, self._io[granularity].of(picks), pes)

    def _figures(self, makespan: int, io_bytes: Sequence[int], pes: int) -> tuple[Figures, ...]:
        return tuple(
            figures_of(self._asked.objectives, self._asked.machine(pes, memory), makespan, least)
            for memory, least in zip(self._asked.memories, io_bytes, strict=True)
        )

    def _makespan(self, picks: Sequence[int | None], granularity: int, pes: int) -> int:
        """Return what schedules take at least; less is sure where scopes are cut into more tasks than declared."""
        chosen = self._asked.granularities[granularity]
        is_cut = chosen.split is not None or chosen.pieces is not None or bool(chosen.own)
        key = (picks, granularity if is_cut else 0, pes, is_cut)
        if key not in self._makespans:
            left = self._space.restricted(picks)
            self._makespans[key] = (divided_bound if is_cut else expansion_bound)(left, pes).cycles
        return self._makespans[key]


def estimated_cycles(graph: LoweredGraph, granularity: Granularity, pes: int) -> int:
    """Return the cycles that a lowering is estimated to take on a number of processing elements.

    Raises:
        UserError: it has more tasks than a canonical DAG can hold.
    """
    return estimate(flow_of(graph, ExtractionOptions(Volumes.EXACT, granularity)), pes).cycles


class _LeastIo:
    """Bytes that operators move off the chip at least, under each of their options.

    Counted is what certainly passes through memory: what the model reads or gives back, what must be stored, and what a
    task reads several times, which no stream carries. An array that is larger than the memory on the chip moves each
    time that it is read or written; a smaller one may be on the chip, so that a result leaves once, and what only one
    operator reads comes once.
    """

    def __init__(
        self, space: Space, outlined: OutlinedModel, granularity: Granularity, memories: Sequence[int]
    ) -> None:
        """Look at every option of every group once; others do not depend on it.

        Args:
            space: of expansions.
            outlined: the model.
            granularity: of the tasks.
            memories: bytes of on-chip memory.
        """
        self._granularity, self._memories = granularity, np.array(memories, dtype=np.int64)
        most = max((len(group.options) for group in space.groups), default=1)
        grouped = {origin for group in space.groups for origin in group.origins}
        self._options: list[list[Int64]] = [[] for _ in space.groups]
        self._others = self._nothing = np.zeros(len(memories), dtype=np.int64)
        for turn in range(most):
            picks = [min(turn, len(group.options) - 1) for group in space.groups]
            graph = outlined.outline(space.choices(picks)).graph
            by_origin: dict[str, list[MapScope]] = {}
            for scope in graph.scopes:
                by_origin.setdefault(scope.origin, []).append(scope)
            external = _external(graph)
            for group, options in zip(space.groups, self._options, strict=True):
                if turn < len(group.options):
                    own = (self._of(by_origin.get(origin, []), graph.arrays, external) for origin in group.origins)
                    options.append(sum(own, start=self._nothing))
            if turn == 0:
                rest = (self._of(own, graph.arrays, external) for name, own in by_origin.items() if name not in grouped)
                self._others = sum(rest, start=self._nothing)
        self._least: list[Int64] = [np.min(options, axis=0) for options in self._options]

    def of(self, picks: Sequence[int | None]) -> tuple[int, ...]:
        """Return the bytes for each amount of memory if some groups have one option, the others any."""
        groups = zip(picks, self._options, self._least, strict=True)
        own = (least if pick is None else options[pick] for pick, options, least in groups)
        return tuple(sum(own, start=self._others).tolist())

    def _of(self, scopes: Sequence[MapScope], arrays: Mapping[str, Array], external: Mapping[str, int]) -> Int64:
        """Return the bytes of the scopes of one operator for each amount of memory."""
        total = self._nothing
        comes: dict[str, int] = {}  # inputs and weights that only this operator reads
        for family in divide(scopes, self._granularity):
            for access, moved, is_read in _certain(family, arrays, is_split=self._granularity.split is not None):
                array = arrays[access.array]
                size = array.elements * array.element_bytes
                if is_read and external.get(access.array) == 1:
                    comes[access.array] = max(comes.get(access.array, 0), min(size, moved))
                is_result = not is_read and not array.is_transient
                total = total + moved * (is_result | (size > self._memories))
        for name, moved in comes.items():
            total = total + moved * (arrays[name].elements * arrays[name].element_bytes <= self._memories)
        return total


def _external(graph: LoweredGraph) -> Mapping[str, int]:
    """Return the arrays that no scope writes, and how many operators read them."""
    written = {access.array for scope in graph.scopes for access in scope.writes}
    readers: dict[str, set[str]] = {}
    for scope in graph.scopes:
        for access in scope.reads:
            if access.array not in written:
                readers.setdefault(access.array, set()).add(scope.origin)
    return {name: len(origins) for name, origins in readers.items()}


def _certain(family: TaskFamily, arrays: Mapping[str, Array], *, is_split: bool) -> Iterator[tuple[Access, int, bool]]:
    """Yield what the tasks of a scope certainly read from memory or write there, in bytes; whether they read it."""
    for access in family.scope.reads:
        array = arrays[access.array]
        repeats = not is_split and not access.is_indirect and not family.member(access).is_injective
        if access.is_indirect or not array.is_transient or array.is_materialised or repeats:
            yield access, family.iterations().total * array.element_bytes, True
    for access in family.scope.writes:
        array = arrays[access.array]
        if not array.is_transient or array.is_materialised:
            yield access, family.written(access).total * array.element_bytes, False

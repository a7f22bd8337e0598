"""What parts of the space take at least, and what single lowerings are estimated to take."""

from collections.abc import Sequence

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.estimate import estimate
from dfcompile.exploration.asked import Asked
from dfcompile.exploration.least_io import LeastIo
from dfcompile.exploration.objectives import Figures, figures_of
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
        self._io = [LeastIo(space, outlined, granularity, asked.memories) for granularity in asked.granularities]
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
        flow = flow_of(graph, ExtractionOptions(Volumes.EXACT, self._asked.granularities[granularity]))
        return self._figures(estimate(flow, pes).cycles, self._io[granularity].of(picks), pes)

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

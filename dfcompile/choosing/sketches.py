"""Sketches: what candidates give, without building their SDFGs."""

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Estimate, Memory, estimate
from dfcompile.errors import UserError
from dfcompile.lowering.alternatives.outlined import Outline
from dfcompile.options import Choice, Effort, Volumes
from dfcompile.scheduler.listing.listed_schedules import is_listable_size, most_listable_nodes

OutlineOf = Callable[[Sequence[Choice]], Outline]


class Sketch(Struct, frozen=True, eq=False):
    """What a candidate gives.

    Attributes:
        candidate: the choice.
        outline: the model under it.
        estimate: of its schedule.
    """

    candidate: Candidate
    outline: Outline
    estimate: Estimate


class Sketches:
    """The sketches of one model on one number of processing elements; each is made once."""

    def __init__(
        self, outline_of: OutlineOf, volumes: Volumes, pes: int, effort: Effort, memory: Memory | None = None
    ) -> None:
        """Say what sketches are of, and how schedules are made.

        Args:
            outline_of: gives the model under a choice of expansions.
            volumes: of edges.
            pes: number of processing elements P.
            effort: of schedules: with little, large graphs hardly stream.
            memory: of the chip; ``None``: it is not looked at.
        """
        self._outline_of, self._effort = cache(outline_of), effort  # granularities share outlines
        self.volumes, self.pes, self.memory = volumes, pes, memory
        self._found: dict[Candidate, Sketch | None] = {}
        self._estimates: dict[tuple[object, ...], Estimate] = {}  # by what candidates give: several may give the same

    @property
    def most_streamed_tasks(self) -> int:
        """About how many tasks a schedule has at most that streams as much as it may."""
        return most_listable_nodes(self._effort) * 7 // 8  # the others are buffers

    def of(self, candidate: Candidate) -> Sketch | None:
        """Return the sketch of a candidate; ``None`` if it is not possible, see `required`."""
        if candidate not in self._found:
            try:
                self._found[candidate] = self.required(candidate)
            except UserError:
                self._found[candidate] = None
        return self._found[candidate]

    def required(self, candidate: Candidate) -> Sketch:
        """Return the sketch of a candidate.

        Raises:
            UserError: an operator has a form that its expansion does not take, or there are more tasks than a canonical
                DAG can hold.
        """
        outline = self._outline_of(candidate.choices)
        key = outline.chosen, candidate.granularity
        if key not in self._estimates:
            flow = flow_of(outline.graph, ExtractionOptions(self.volumes, candidate.granularity))
            self._estimates[key] = estimate(flow, self.pes, self._streams, self.memory)
        return Sketch(candidate, outline, self._estimates[key])

    def _streams(self, tasks: int, elements: int) -> bool:
        return is_listable_size(tasks, elements, self._effort)

    def outline(self, choices: Sequence[Choice]) -> Outline | None:
        """Return the model under a choice; ``None`` if an operator has a form that its expansion does not take."""
        try:
            return self._outline_of(choices)
        except UserError:
            return None

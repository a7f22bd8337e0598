"""Sketches: what candidates give, without building their SDFGs."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Estimate, estimate
from dfcompile.errors import UserError
from dfcompile.lowering.alternatives.outlined import Outline
from dfcompile.options import Choice, Volumes

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

    def __init__(self, outline_of: OutlineOf, volumes: Volumes, pes: int) -> None:
        self._outline_of, self._volumes, self._pes = outline_of, volumes, pes
        self._found: dict[Candidate, Sketch | None] = {}
        self._estimates: dict[tuple[object, ...], Estimate] = {}  # by what candidates give: several may give the same

    def of(self, candidate: Candidate) -> Sketch | None:
        """Return the sketch of a candidate; ``None`` if an operator has a form that its expansion does not take."""
        if candidate not in self._found:
            self._found[candidate] = self._made(candidate)
        return self._found[candidate]

    def required(self, candidate: Candidate) -> Sketch:
        """Return the sketch of a candidate.

        Raises:
            UserError: an operator has a form that its expansion does not take, or there are more tasks than a canonical
                DAG can hold.
        """
        outline = self._outline_of(candidate.choices)
        flow = flow_of(outline.graph, ExtractionOptions(self._volumes, candidate.granularity))
        return Sketch(candidate, outline, estimate(flow, self._pes))

    def outline(self, choices: Sequence[Choice]) -> Outline | None:
        """Return the model under a choice; ``None`` if an operator has a form that its expansion does not take."""
        try:
            return self._outline_of(choices)
        except UserError:
            return None

    def _made(self, candidate: Candidate) -> Sketch | None:
        outline = self.outline(candidate.choices)
        if outline is None:
            return None
        key = outline.chosen, candidate.granularity
        if key not in self._estimates:
            try:
                flow = flow_of(outline.graph, ExtractionOptions(self._volumes, candidate.granularity))
            except UserError:
                return None  # more tasks than a canonical DAG can hold
            self._estimates[key] = estimate(flow, self._pes)
        return Sketch(candidate, outline, self._estimates[key])

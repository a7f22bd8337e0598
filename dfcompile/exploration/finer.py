"""What tasks in pieces may bring where an exploration was of tasks as expansions declare them alone."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.granularity import DECLARED, Granularity
from dfcompile.choosing.candidate import PIECES_PER_ELEMENT
from dfcompile.choosing.estimate import estimate
from dfcompile.errors import UserError
from dfcompile.exploration.asked import Asked
from dfcompile.exploration.objectives import Objective
from dfcompile.exploration.search import Point
from dfcompile.exploration.space import Space
from dfcompile.lowering.alternatives.outlined import Outline, OutlinedModel
from dfcompile.options import Volumes

_WORTH_SAYING = 0.9  # of the makespan


class Finer(Struct, frozen=True):
    """An estimate that is well below what was found on a number of processing elements.

    Attributes:
        pes: number of processing elements.
        found_cycles: least makespan of the front there.
        pieces: of each scope, at most.
        estimated_cycles: of the same expansions in these pieces.
    """

    pes: int
    found_cycles: int
    pieces: int
    estimated_cycles: int


def finer_tasks(asked: Asked, space: Space, outlined: OutlinedModel, front: Sequence[Point]) -> tuple[Finer, ...]:
    """Return by how much the fastest points of a front may be faster in pieces, where that is worth saying."""
    if asked.granularities != (DECLARED,) or Objective.MAKESPAN not in asked.objectives:
        return ()
    found = []
    for pes in asked.pes:
        points = [point for point in front if point.candidate.pes == pes]
        if points:
            best = min(points, key=lambda point: (_makespan(asked, point), point.candidate.picks))
            cycles = _makespan(asked, best)
            outline = outlined.outline(space.choices(best.candidate.picks))
            estimated, pieces = min(_estimates(outline, pes), default=(cycles, 0))
            estimated = _makespan(asked, best, estimated)  # with as much I/O
            if estimated < _WORTH_SAYING * cycles:
                found.append(Finer(pes, cycles, pieces, estimated))
    return tuple(found)


def _makespan(asked: Asked, point: Point, schedule_cycles: int | None = None) -> int:
    """Return the cycles of a point on its machine, or those with a schedule of other cycles."""
    outcome = point.outcome
    machine = asked.machine(point.candidate.pes, outcome.memory_bytes)
    cycles = outcome.makespan_cycles if schedule_cycles is None else schedule_cycles
    return machine.makespan_cycles(cycles, outcome.io_bytes)


def _estimates(outline: Outline, pes: int) -> Iterator[tuple[int, int]]:
    for times in PIECES_PER_ELEMENT:
        pieces = times * pes
        try:
            flow = flow_of(outline.graph, ExtractionOptions(Volumes.EXACT, Granularity(pieces=pieces)))
        except UserError:  # more tasks than a canonical DAG can hold
            continue
        yield estimate(flow, pes).cycles, pieces

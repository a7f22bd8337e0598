"""Operators that hand on more than memory holds get more tasks together: so they work on fewer slices of it at a time.

What an operator takes alone does not tell that, as alone it reads and writes all of its operands; nor do more tasks of
one of them change much while the next one still works on all slices.
"""

from collections.abc import Iterator, Sequence

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.estimate import Estimate, moved_slices
from dfcompile.choosing.operator_options import OperatorOptions
from dfcompile.choosing.sketches import Sketch, Sketches

_TIMES = (4, 8)  # as many tasks of each operator
_MORE_TASKS = 4  # of the whole model, at most one in so many more
_LARGE = 4  # arrays count of which more than one part in so many of the memory is moved
_MORE_MOVED = 2  # than is estimated DRAM may move by one part in so many, where more is in memory than on the average
_WORTH = 20  # such tasks are to save one part in so many


def in_more_tasks(
    best: Sketch, operators: Sequence[OperatorOptions], space: Space, sketches: Sketches, most_tasks: int
) -> Sketch:
    """Return a choice, or one in which operators that hand on what does not stay in memory have more tasks.

    Args:
        best: the choice.
        operators: of the model, those of one shape together.
        space: all that may be chosen: what the user says of tasks stays.
        sketches: of the model.
        most_tasks: that a choice may have; here it may be some more.
    """
    most = most_tasks + most_tasks // _MORE_TASKS
    fixed = {origin for origin, _ in space.granularities[0].own}
    for origins in _handing_on(best, operators, sketches) if len(space.granularities) > 1 else ():
        if fixed.intersection(origins):
            continue
        options = (_cut(best, origins, times, sketches) for times in _TIMES)
        fitting = [each for each in options if each is not None and each.estimate.tasks <= most]
        found = min(fitting, key=lambda each: _cautious(each.estimate), default=best)
        if _cautious(found.estimate) * _WORTH < _cautious(best.estimate) * (_WORTH - 1):
            best = found
    return best


def _cautious(estimate: Estimate) -> int:
    """Return the cycles of tasks or of DRAM, whichever are more, if DRAM moves more than is estimated."""
    return max(estimate.cycles, estimate.memory_cycles + estimate.memory_cycles // _MORE_MOVED)


def _cut(best: Sketch, origins: Sequence[str], times: int, sketches: Sketches) -> Sketch | None:
    """Return a choice with so many times as many tasks of some operators."""
    granularity = best.candidate.granularity
    for origin in origins:
        pieces = granularity.pieces_of(origin)
        granularity = granularity.but_for(origin, pieces and times * pieces, granularity.rest_of(origin))
    return sketches.of(Candidate(best.candidate.choices, granularity))


def _handing_on(best: Sketch, operators: Sequence[OperatorOptions], sketches: Sketches) -> Iterator[list[str]]:
    """Yield operators that hand on much in slices which do not all stay on the chip, those of one shape together."""
    memory = sketches.memory
    if memory is None or _cautious(best.estimate) <= best.estimate.cycles:
        return
    flow = flow_of(best.outline.graph, ExtractionOptions(sketches.volumes, best.candidate.granularity))
    chains: list[dict[str, None]] = []
    for name, part in moved_slices(flow, sketches.pes, memory).items():
        use = flow.uses[name]
        size = use.array.elements * use.array.element_bytes
        ends = dict.fromkeys(flow.families[number].scope.origin for number, _ in (*use.writers, *use.readers))
        if len(ends) > 1 and part * size * _LARGE > memory.sram_bytes:
            joined = [chain for chain in chains if chain.keys() & ends.keys()]
            chains = [chain for chain in chains if chain not in joined]
            chains.append({origin: None for chain in (*joined, ends) for origin in chain})
    number_of = {origin: number for number, each in enumerate(operators) for origin in each.origins}
    alike: dict[tuple[int, ...], list[str]] = {}
    for chain in chains:
        alike.setdefault(tuple(number_of[origin] for origin in chain), []).extend(chain)
    yield from alike.values()

"""One option for each operator, so that they take least one after another, with tasks that can be afforded."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions

_WORTH = 2000  # more tasks of an operator are worth one part in so many of the time of all


def fastest_options(operators: Sequence[OperatorOptions], most_tasks: int) -> tuple[OperatorOption, ...]:
    """Return an option for the operators of each shape.

    Each begins with its fewest tasks; then those get more first that gain most by each task, up to a number of tasks
    together, and as long as a gain is worth mentioning.

    Args:
        operators: with their options, of more and more tasks and less and less time.
        most_tasks: of all together; those begun with may be more.
    """
    chosen = [0] * len(operators)
    tasks = sum(each.options[0].alone.tasks * len(each.origins) for each in operators)
    cycles = sum(each.options[0].alone.time * len(each.origins) for each in operators)
    steps = [step for number in range(len(operators)) if (step := _step(operators, number, 0)) is not None]
    heapify(steps)
    while steps:
        _, number, target = heappop(steps)
        count = len(operators[number].origins)
        before, after = operators[number].options[chosen[number]], operators[number].options[target]
        gain = (before.alone.time - after.alone.time) * count
        more = (after.alone.tasks - before.alone.tasks) * count
        if gain * _WORTH < cycles or tasks + more > most_tasks:
            continue
        chosen[number], tasks, cycles = target, tasks + more, cycles - gain
        following = _step(operators, number, target)
        if following is not None:
            heappush(steps, following)
    return tuple(each.options[at] for each, at in zip(operators, chosen, strict=True))


def _step(operators: Sequence[OperatorOptions], number: int, at: int) -> tuple[Fraction, int, int] | None:
    """Return the step to an option of more tasks that gains most by each, its operators and the option."""
    options = operators[number].options
    steps = [
        (
            Fraction(other.alone.time - options[at].alone.time, max(other.alone.tasks - options[at].alone.tasks, 1)),
            number,
            target,
        )
        for target, other in enumerate(options)
        if target > at
    ]
    return min(steps, default=None)


def candidate_of(operators: Sequence[OperatorOptions], options: Sequence[OperatorOption], space: Space) -> Candidate:
    """Return the choice for the whole model that gives each operator its option."""
    pairs = [(origin, option) for each, option in zip(operators, options, strict=True) for origin in each.origins]
    choices = (choice for origin, option in pairs for choice in option.choices(origin))
    granularity = space.granularities[0]  # of the user, who left no other
    if len(space.granularities) > 1:
        granularity = _granularity({origin: option.pieces for origin, option in pairs})
    return Candidate((*space.fixed, *choices), granularity)


def _granularity(pieces: Mapping[str, int | None]) -> Granularity:
    """Return the granularity with the most frequent number of pieces for all, and the others for single operators."""
    counts = list(pieces.values())
    usual = max(dict.fromkeys(counts), key=counts.count, default=None)
    own = tuple((origin, count) for origin, count in pieces.items() if count != usual)
    return Granularity(pieces=usual, own=own)

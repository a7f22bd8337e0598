"""Choices of single operators: what is fastest alone, then changes while the estimate of the whole gets shorter."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import islice

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.estimate import Estimate
from dfcompile.choosing.operator_options import Cost, OperatorOption, OperatorOptions, time_alone
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.host.stages import counted

_WORTH = 2000  # more tasks of an operator are worth one part in so many of the time of all


def fastest_options(
    operators: Sequence[OperatorOptions], most_tasks: int, cost: Cost = time_alone
) -> tuple[OperatorOption, ...]:
    """Return an option for the operators of each shape.

    Each begins with its fewest tasks; then those get more first that gain most by each task, up to a number of tasks
    together, and as long as a gain is worth mentioning.

    Args:
        operators: of a model.
        most_tasks: of all together; those begun with may be more.
        cost: of an option, in cycles.
    """
    # Of more and more tasks and less and less cost.
    options = [each.options(cost) for each in operators]
    counts = [len(each.origins) for each in operators]
    alone = [[(option.alone.tasks, cost(option.alone)) for option in own] for own in options]
    chosen = [0] * len(operators)
    tasks = sum(own[0][0] * count for own, count in zip(alone, counts, strict=True))
    cycles = sum(own[0][1] * count for own, count in zip(alone, counts, strict=True))
    steps = [step for number, own in enumerate(alone) if (step := _step(own, number, 0)) is not None]
    heapify(steps)
    while steps:
        _, number, target = heappop(steps)
        before, after = alone[number][chosen[number]], alone[number][target]
        gain = (before[1] - after[1]) * counts[number]
        more = (after[0] - before[0]) * counts[number]
        if gain * _WORTH < cycles or tasks + more > most_tasks:
            continue
        chosen[number], tasks, cycles = target, tasks + more, cycles - gain
        following = _step(alone[number], number, target)
        if following is not None:
            heappush(steps, following)
    return tuple(own[at] for own, at in zip(options, chosen, strict=True))


def _step(alone: Sequence[tuple[int, int]], number: int, at: int) -> tuple[Fraction, int, int] | None:
    """Return the step to an option of more tasks that gains most by each, its operators and the option.

    Args:
        alone: tasks and cost of each option.
        number: of the operators.
        at: option that they have.
    """
    tasks, cost = alone[at]
    steps = [
        (Fraction(less - cost, max(more - tasks, 1)), number, target)
        for target, (more, less) in enumerate(alone[at + 1 :], start=at + 1)
    ]
    return min(steps, default=None)


def candidate_of(operators: Sequence[OperatorOptions], options: Sequence[OperatorOption], space: Space) -> Candidate:
    """Return the choice for the whole model that gives each operator its option."""
    pairs = [(origin, option) for each, option in zip(operators, options, strict=True) for origin in each.origins]
    choices = (choice for origin, option in pairs for choice in option.choices(origin))
    granularity = space.granularities[0]  # of the user, who left no other
    if len(space.granularities) > 1:
        granularity = _granularity(pairs)
    return Candidate((*space.fixed, *choices), granularity)


def _granularity(pairs: Sequence[tuple[str, OperatorOption]]) -> Granularity:
    """Return the granularity with the most frequent number of pieces for all, and the others for single operators."""
    counts = [option.pieces for _, option in pairs]
    usual = max(dict.fromkeys(counts), key=counts.count, default=None)
    own = tuple((origin, option.pieces) for origin, option in pairs if option.pieces != usual)
    rest = tuple((origin, option.rest) for origin, option in pairs if option.rest is not None)
    return Granularity(pieces=usual, own=own, rest=rest)


_ESTIMATED_SCOPES = 1_000  # in all tries: some tenths of a second
_MANY_TASKS = 10_000  # that take some tenths of a second to be scheduled and mapped
_WORTH_FEWER = 150  # one percent fewer are worth one part in so many of a percent of the time
_MORE_MOVED = 4  # for fewer tasks DRAM may need one part in so many of the time more, as far as it has that
_SHARES = (1, 2, 4)  # of what they may take longer, one in so many: what operators take does not just add up


class Descent:
    """Improves choices for one model."""

    def __init__(self, operators: Sequence[OperatorOptions], sketches: Sketches, space: Space, most_tasks: int) -> None:
        """Take in the operators of a model.

        Args:
            operators: with their options.
            sketches: of the model.
            space: all that may be chosen.
            most_tasks: that a choice may have.
        """
        self._operators, self._sketches, self._space, self._most = operators, sketches, space, most_tasks

    def best(self, alone: Iterable[tuple[OperatorOption, ...]], uniform: Sequence[Sketch]) -> tuple[Sketch, ...]:
        """Return the best choice found, then the best of options that are fastest alone; nothing if there is none.

        Args:
            alone: the options that are fastest alone, among all and among some.
            uniform: choices to begin from as well.
        """
        starts = [(sketch, options) for options in alone if (sketch := self._sketch(options)) is not None]
        first = min((sketch for sketch, _ in starts), key=lambda sketch: sketch.estimate.order, default=None)
        for sketch in uniform:
            options = self._options(sketch)
            if options is not None:
                starts.append((sketch, options))
        if not starts:
            return ()
        best = self._improved(*min(starts, key=lambda start: start[0].estimate.order))
        return (best,) if first is None or best is first else (best, first)

    def _improved(self, best: Sketch, options: tuple[OperatorOption, ...]) -> Sketch:
        tries = _ESTIMATED_SCOPES // max(len(best.outline.graph.scopes), 1)
        tried = {options}
        for _ in counted(range(tries)):
            changes = (
                (*options[:number], option, *options[number + 1 :]) for number, option in self._changes(best, options)
            )
            changed = next((each for each in changes if each not in tried), None)
            if changed is None:
                break
            tried.add(changed)
            found = self._sketch(changed)
            if found is None or found.estimate.tasks > self._most:
                continue
            if found.estimate.time < best.estimate.time:
                best, options = found, changed
        return self._in_fewer_tasks(best, options)

    def _in_fewer_tasks(self, best: Sketch, options: Sequence[OperatorOption]) -> Sketch:
        """Return a choice, or if it has many tasks one of fewer that takes hardly longer: tasks cost our time."""
        whole = best.estimate
        if whole.tasks < _MANY_TASKS:
            return best
        for share in _SHARES:
            found = self._sketch(self._fewer(whole, options, share))
            if found is not None:
                fewer, longer = whole.tasks - found.estimate.tasks, found.estimate.time - whole.time
                if fewer > 0 and longer * whole.tasks * _WORTH_FEWER <= fewer * whole.time:
                    return found
        return best

    def _fewer(self, whole: Estimate, options: Sequence[OperatorOption], share: int) -> tuple[OperatorOption, ...]:
        """Return options of fewer tasks for which tasks and DRAM have time, or that are worth what they take longer.

        Operators give up tasks first that cost the fewest cycles each.

        Args:
            whole: what the options take.
            options: of all operators.
            share: one in so many cycles may be taken of those that there are.
        """
        idle = (whole.time - whole.cycles) // share
        memory_idle = min(whole.time - whole.memory_cycles, whole.time // _MORE_MOVED) // share
        worth = Fraction(whole.time, whole.tasks * _WORTH_FEWER * share)
        changes = []
        for number, (each, taken) in enumerate(zip(self._operators, options, strict=True)):
            count, before = len(each.origins), taken.alone
            for option in each.fronts:
                fewer = before.tasks - option.alone.tasks
                if fewer > 0:
                    more = max(option.alone.cycles - before.cycles, 0)
                    moved = max(option.alone.memory_cycles - before.memory_cycles, 0)
                    changes.append((Fraction(more, fewer), -fewer, number, more * count, moved * count, option))
        found = list(options)
        for each_costs, _, number, more, moved, option in sorted(changes, key=lambda change: change[:3]):
            if found[number] is options[number] and moved <= memory_idle and (more <= idle or each_costs <= worth):
                found[number], idle, memory_idle = option, max(idle - more, 0), memory_idle - moved
        return tuple(found)

    def _changes(self, best: Sketch, options: Sequence[OperatorOption]) -> Sequence[tuple[int, OperatorOption]]:
        """Return other options, those first that make the whole fastest by what each operator takes alone.

        While tasks run DRAM moves what others need, so what counts is the longer of the two of all operators together.
        """
        whole = best.estimate
        changes = []
        for number, (each, taken) in enumerate(zip(self._operators, options, strict=True)):
            count = len(each.origins)
            for option in each.fronts:
                tasks = count * (option.alone.tasks - taken.alone.tasks)
                if option is taken or (tasks > 0 and whole.tasks + tasks > self._most):
                    continue
                cycles = whole.cycles + count * (option.alone.cycles - taken.alone.cycles)
                memory = whole.memory_cycles + count * (option.alone.memory_cycles - taken.alone.memory_cycles)
                time = max(cycles, memory)
                changes.append((time, cycles + memory, tasks, number, option))
        return [change[3:] for change in sorted(changes, key=lambda change: change[:4])]

    def _sketch(self, options: Sequence[OperatorOption]) -> Sketch | None:
        return self._sketches.of(candidate_of(self._operators, options, self._space))

    def _options(self, sketch: Sketch) -> tuple[OperatorOption, ...] | None:
        """Return the options that a choice consists of; ``None`` if one of them was not looked at."""
        names = self._space.expansions_of(sketch.outline.chosen)
        found: list[OperatorOption] = []
        for each in self._operators:
            origin = each.origins[0]
            own = names.get(origin, {})
            fitting = (option for option in each.known if option.is_of(origin, own, sketch.candidate.granularity))
            found.extend(islice(fitting, 1))
        return tuple(found) if len(found) == len(self._operators) else None

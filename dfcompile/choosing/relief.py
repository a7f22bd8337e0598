"""Models that wait for DRAM: operators that move most beyond what they have to are lowered or divided in other ways.

What a schedule moves is known once it is made, and is more than is estimated, as a rule. So where tasks looked like
what takes longest, nothing was tried that moves less. A change counts here by the difference that it makes to the
estimate, added to what was measured. The result is scheduled, and taken where the model is faster.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.estimate import Estimate, Memory
from dfcompile.choosing.operator_options import Names, OperatorOptions
from dfcompile.choosing.scoring import Makespans
from dfcompile.choosing.search import Selection
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.expansion_names import base_name
from dfcompile.options import Choice
from dfcompile.records import replace

_WORTH = 100  # of the time, one part in so many is to be gained; operators count that move as much too much
_SHAPES = 4  # of operators, those that move most too much
_OPTIONS = 8  # for a shape, those that look best by what the operator takes alone
_ALIKE = 200  # of what differs by one part in so many in time what moves least is taken: estimates tell no more
_MORE_TASKS = 8  # one in so many more tasks than the choice has
_TRIES = 2  # schedules


class _Option(Struct, frozen=True):
    """A way to lower and divide operators of one shape: expansions, and numbers of pieces."""

    names: Names
    pieces: int | None
    rest: int | None


class _Change(Struct, frozen=True):
    """What an option adds to the estimate of a choice: cycles of tasks and of DRAM, and tasks."""

    option: _Option | None
    cycles: int
    memory_cycles: int
    tasks: int

    @classmethod
    def between(cls, before: Estimate, after: Estimate, option: _Option | None = None) -> "_Change":
        """Return what makes one estimate the other."""
        cycles, memory_cycles = after.cycles - before.cycles, after.memory_cycles - before.memory_cycles
        return cls(option, cycles, memory_cycles, after.tasks - before.tasks)


_NOTHING = _Change(None, 0, 0, 0)


class _Measured(Struct, frozen=True):
    """What the schedule of a choice takes: cycles of tasks, and of DRAM."""

    cycles: int
    memory_cycles: int

    def with_changes(self, changes: Iterable[_Change]) -> tuple[int, int]:
        """Return the cycles that tasks and DRAM take if changes add up."""
        cycles, memory_cycles = self.cycles, self.memory_cycles
        for each in changes:
            cycles, memory_cycles = cycles + each.cycles, memory_cycles + each.memory_cycles
        return cycles, memory_cycles


class Relief:
    """Looks for a faster choice for a model of which the choice is known, and waits for DRAM."""

    def __init__(self, space: Space, sketches: Sketches, makespans: Makespans) -> None:
        """Say what is chosen from.

        Args:
            space: all that may be chosen.
            sketches: of the model.
            makespans: that the choice was compared by.
        """
        self._space, self._sketches, self._makespans = space, sketches, makespans

    def better(self, known: Selection) -> Selection:
        """Return a selection, or one of a faster choice."""
        memory = self._sketches.memory
        for _ in range(_TRIES):
            if memory is None or known.score is None:
                break
            measured = self._measured(memory)
            if measured is None:
                break
            found = self._changed(known.sketch, known.operators, measured)
            whole = _Change.between(known.sketch.estimate, found.estimate)
            if max(measured.with_changes([whole])) * _WORTH > measured.memory_cycles * (_WORTH - 1):
                break
            score = self._makespans.of(found)
            if score >= known.score:
                break
            expansions = self._space.expansions_of(found.outline.chosen)
            known = replace(known, sketch=found, score=score, expansions=expansions)
        return known

    def _measured(self, memory: Memory) -> _Measured | None:
        """Return what a choice takes; ``None`` if it does not wait for DRAM."""
        made = self._makespans.made
        if made is None or made.on_machine is None:
            return None
        cycles, memory_cycles = made.on_machine.makespan_cycles, memory.cycles(sum(made.moved.values()))
        return _Measured(cycles, memory_cycles) if memory_cycles > cycles else None

    def _changed(self, best: Sketch, operators: Sequence[OperatorOptions], measured: _Measured) -> Sketch:
        """Return the choice with other options for some operators that is fastest if what they bring adds up."""
        shapes = self._shapes(best, operators)
        ways = [[_NOTHING, *self._changes(best, each)] for each in shapes]
        spare = best.estimate.tasks // _MORE_TASKS
        fitting = [each for each in product(*ways) if sum(change.tasks for change in each) <= spare]
        costs = [measured.with_changes(each) for each in fitting]
        near = min(map(max, costs)) * (_ALIKE + 1) // _ALIKE
        _, number = min((cost[1], number) for number, cost in enumerate(costs) if max(cost) <= near)
        for shape, change in zip(shapes, fitting[number], strict=True):
            if change.option is not None:
                best = self._with(best, shape, change.option) or best
        return best

    def _changes(self, best: Sketch, each: OperatorOptions) -> Iterator[_Change]:
        """Yield what other options for the operators of a shape bring."""
        for option in self._options(best, each):
            found = self._with(best, each, option)
            if found is not None:
                yield _Change.between(best.estimate, found.estimate, option)

    def _shapes(self, best: Sketch, operators: Sequence[OperatorOptions]) -> Sequence[OperatorOptions]:
        """Return the operators that move most beyond what they have to, those of one shape together."""
        made = self._makespans.made
        assert made is not None
        excess = self._excess(best, made.moved)
        worst = sorted(
            ((sum(excess.get(origin, 0) for origin in each.origins), each) for each in operators),
            key=lambda pair: -pair[0],
        )
        least = sum(made.moved.values())
        return [each for moved, each in worst[:_SHAPES] if moved * _WORTH > least]

    def _excess(self, best: Sketch, moved: Mapping[str, int]) -> Mapping[str, int]:
        """Return the bytes that operators move of what they read, beyond those of each array once.

        What an operator makes for itself alone need not be moved at all; what others make may be written and read.
        """
        options = ExtractionOptions(self._sketches.volumes, best.candidate.granularity)
        flow = flow_of(best.outline.graph, options)
        found: dict[str, int] = {}
        for name, use in flow.uses.items():
            writers, readers = (
                {flow.families[number].scope.origin for number, _ in uses} for uses in (use.writers, use.readers)
            )
            passes = 1 if not writers else 0 if writers == readers and len(writers) == 1 else 2
            size = use.array.elements * use.array.element_bytes
            for origin in sorted(readers):
                found[origin] = found.get(origin, 0) + max(moved.get(name, 0) - passes * size, 0)
        return found

    def _options(self, best: Sketch, each: OperatorOptions) -> Iterable[_Option]:
        """Return other ways to lower or divide the operators of a shape.

        In the options that are known of a model expansions of canonical operators vary together; here each does alone.
        """
        origin = each.origins[0]
        now = _option_of(best, origin, self._space)
        fronts = sorted(each.fronts, key=lambda option: option.alone.time)[:_OPTIONS]
        found = [_Option(option.expansions, option.pieces, option.rest) for option in fronts]
        found += (replace(now, names=names) for names in self._varied(now.names))
        return [option for option in dict.fromkeys(found) if option != now]

    def _varied(self, names: Names) -> Iterator[Names]:
        for at, (op_type, taken) in enumerate(names):
            for name in self._space.canonical.get(op_type, ()):
                if name != taken and base_name(name) == name:
                    yield (*names[:at], (op_type, name), *names[at + 1 :])

    def _with(self, best: Sketch, each: OperatorOptions, option: _Option) -> Sketch | None:
        """Return the sketch with an option for the operators of a shape."""
        origins, granularity = frozenset(each.origins), best.candidate.granularity
        choices = [Choice(op_type, name, origin) for origin in each.origins for op_type, name in option.names]
        others = (choice for choice in best.candidate.choices if choice.origin not in origins)
        if len(self._space.granularities) > 1:
            for origin in each.origins:
                granularity = granularity.but_for(origin, option.pieces, option.rest)
        return self._sketches.of(Candidate((*self._space.fixed, *choices, *others), granularity))


def _option_of(sketch: Sketch, origin: str, space: Space) -> _Option:
    granularity = sketch.candidate.granularity
    names = space.expansions_of(sketch.outline.chosen).get(origin, {})
    return _Option(tuple(names.items()), granularity.pieces_of(origin), granularity.rest_of(origin))

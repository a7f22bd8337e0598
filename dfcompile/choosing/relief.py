"""Models that wait for DRAM: operators that move most beyond what they have to are lowered or divided in other ways.

What a schedule moves is known once it is made, and is more than is estimated, as a rule. So where tasks looked like
what takes longest, nothing was tried that moves less. A change counts here by the difference that it makes to the
estimate, added to what was measured. The result is scheduled, and taken where the model is faster.
"""

from collections.abc import Iterator, Mapping, Sequence

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
_CHANGES = 4  # of shapes, one after the other
_LITTLE = 1000  # of the time, one part in so many is worth another change
_AGAIN = 8  # options are looked at again after a change
_ESTIMATED_SCOPES = 50_000  # in all tries: some seconds
_MORE_TASKS = 8  # one in so many more tasks than the choice has
_TRIES = 2  # schedules


class _Option(Struct, frozen=True):
    """A way to lower and divide operators of one shape: expansions, and numbers of pieces."""

    names: Names
    pieces: int | None
    rest: int | None


class _Measured(Struct, frozen=True):
    """What the schedule of a choice takes, cycles of tasks and of DRAM, and what was estimated of it."""

    cycles: int
    memory_cycles: int
    estimate: Estimate

    def predicted(self, sketch: Sketch) -> tuple[int, int]:
        """Return the cycles of another choice: the longer of tasks and DRAM, and those of DRAM."""
        after, before = sketch.estimate, self.estimate
        memory_cycles = self.memory_cycles + after.memory_cycles - before.memory_cycles
        return max(self.cycles + after.cycles - before.cycles, memory_cycles), memory_cycles


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
            measured = self._measured(known.sketch, memory)
            if measured is None:
                break
            found = self._changed(known.sketch, known.operators, measured)
            if measured.predicted(found)[0] * _WORTH > measured.memory_cycles * (_WORTH - 1):
                break
            score = self._makespans.of(found)
            if score >= known.score:
                break
            expansions = self._space.expansions_of(found.outline.chosen)
            known = replace(known, sketch=found, score=score, expansions=expansions)
        return known

    def _measured(self, sketch: Sketch, memory: Memory) -> _Measured | None:
        """Return what a choice takes; ``None`` if it does not wait for DRAM."""
        made = self._makespans.made
        if made is None or made.on_machine is None:
            return None
        found = made.on_machine
        cycles, memory_cycles = found.schedule.makespan_cycles, memory.cycles(sum(found.moved.values()))
        return _Measured(cycles, memory_cycles, sketch.estimate) if memory_cycles > cycles else None

    def _changed(self, best: Sketch, operators: Sequence[OperatorOptions], measured: _Measured) -> Sketch:
        """Return the choice with other options for some operators, one shape after another, as long as that helps.

        What looks best at first is looked at again after each change, and what differs from the new option.
        """
        tried = [(each, option) for each in self._shapes(best, operators) for option in self._options(best, each)]
        most = best.estimate.tasks * (_MORE_TASKS + 1) // _MORE_TASKS
        left = _ESTIMATED_SCOPES // max(len(best.outline.graph.scopes), 1)
        for _ in range(_CHANGES):
            tried = tried[:left]
            left -= len(tried)
            made = [(number, self._with(best, *pair)) for number, pair in enumerate(tried)]
            fitting = [
                (*measured.predicted(found), number, found)
                for number, found in made
                if found is not None and found.estimate.tasks <= most
            ]
            fitting.sort(key=lambda each: each[:3])
            now = measured.predicted(best)[0]
            if not fitting or (now - fitting[0][0]) * _LITTLE < now:
                break
            *_, number, best = fitting[0]
            shape = tried[number][0]
            tried = [tried[number] for *_, number, _ in fitting[1:_AGAIN]]
            tried += ((shape, option) for option in self._varied(best, shape))
        return best

    def _shapes(self, best: Sketch, operators: Sequence[OperatorOptions]) -> Sequence[OperatorOptions]:
        """Return the operators that move most beyond what they have to, those of one shape together."""
        made = self._makespans.made
        assert made is not None
        assert made.on_machine is not None
        moved_bytes = made.on_machine.moved
        excess = self._excess(best, moved_bytes)
        worst = sorted(
            ((sum(excess.get(origin, 0) for origin in each.origins), each) for each in operators),
            key=lambda pair: -pair[0],
        )
        least = sum(moved_bytes.values())
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

    def _options(self, best: Sketch, each: OperatorOptions) -> Iterator[_Option]:
        """Yield other ways to lower or divide the operators of a shape.

        In the options that are known of a model expansions of canonical operators vary together.
        """
        fronts = sorted(each.fronts, key=lambda option: option.alone.time)[:_OPTIONS]
        known = (_Option(option.expansions, option.pieces, option.rest) for option in fronts)
        yield from dict.fromkeys((*known, *self._varied(best, each)))

    def _varied(self, best: Sketch, each: OperatorOptions) -> Iterator[_Option]:
        """Yield what they have with another expansion of a single canonical operator."""
        origin, granularity = each.origins[0], best.candidate.granularity
        names = tuple(self._space.expansions_of(best.outline.chosen).get(origin, {}).items())
        for at, (op_type, taken) in enumerate(names):
            for name in self._space.canonical.get(op_type, ()):
                if name != taken and base_name(name) == name:
                    other = *names[:at], (op_type, name), *names[at + 1 :]
                    yield _Option(other, granularity.pieces_of(origin), granularity.rest_of(origin))

    def _with(self, best: Sketch, each: OperatorOptions, option: _Option) -> Sketch | None:
        """Return the sketch with an option for the operators of a shape."""
        origins, granularity = frozenset(each.origins), best.candidate.granularity
        choices = [Choice(op_type, name, origin) for origin in each.origins for op_type, name in option.names]
        others = (choice for choice in best.candidate.choices if choice.origin not in origins)
        if len(self._space.granularities) > 1:
            for origin in each.origins:
                granularity = granularity.but_for(origin, option.pieces, option.rest)
        return self._sketches.of(Candidate((*self._space.fixed, *choices, *others), granularity))

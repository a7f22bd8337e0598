"""Changes of single operators, as long as the estimate of the whole model gets shorter."""

from collections.abc import Iterable, Iterator, Sequence

from dfcompile.choosing.candidate import Space
from dfcompile.choosing.operator_choice import candidate_of
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.host.stages import counted

_ESTIMATED_SCOPES = 1_000  # in all tries: some tenths of a second


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
        first = min((sketch for sketch, _ in starts), key=lambda sketch: sketch.estimate.time, default=None)
        for sketch in uniform:
            options = self._options(sketch)
            if options is not None:
                starts.append((sketch, options))
        if not starts:
            return ()
        best = self._improved(*min(starts, key=lambda start: start[0].estimate.time))
        return (best,) if first is None or best is first else (best, first)

    def _improved(self, best: Sketch, options: tuple[OperatorOption, ...]) -> Sketch:
        tries = _ESTIMATED_SCOPES // max(len(best.outline.graph.scopes), 1)
        for _, (number, option) in zip(counted(range(tries)), self._changes(options), strict=False):
            changed = (*options[:number], option, *options[number + 1 :])
            found = self._sketch(changed)
            if found is None or found.estimate.tasks > self._most:
                continue
            if found.estimate.time < best.estimate.time:
                best, options = found, changed
        return best

    def _changes(self, options: Sequence[OperatorOption]) -> Iterator[tuple[int, OperatorOption]]:
        """Yield other options, those first that gain most where each operator has the machine for itself."""
        changes = [
            (len(each.origins) * (option.alone.time - taken.alone.time), option.alone.tasks, number, option)
            for number, (each, taken) in enumerate(zip(self._operators, options, strict=True))
            for option in each.options
            if option != taken
        ]
        for _, _, number, option in sorted(changes, key=lambda change: change[:3]):
            yield number, option

    def _sketch(self, options: Sequence[OperatorOption]) -> Sketch | None:
        return self._sketches.of(candidate_of(self._operators, options, self._space))

    def _options(self, sketch: Sketch) -> tuple[OperatorOption, ...] | None:
        """Return the options that a choice consists of; ``None`` if one of them was not looked at."""
        names = self._space.expansions_of(sketch.outline.chosen)
        found = []
        for each in self._operators:
            origin = each.origins[0]
            pieces = sketch.candidate.granularity.pieces_of(origin)
            own = names.get(origin, {})
            fitting = [option for option in each.known if option.pieces == pieces and dict(option.expansions) == own]
            found.extend(fitting[:1])
        return tuple(found) if len(found) == len(self._operators) else None

"""The automatic choice for one model, on any number of processing elements."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import DECLARED, Granularity
from dfcompile.choosing.candidate import Space, granularities, space_of
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.refinement import SMALL_WORK, Refinement
from dfcompile.choosing.relief import Relief
from dfcompile.choosing.scoring import NOTHING, THOROUGH, Limits, Machine, Makespans, Scores
from dfcompile.choosing.search import GLANCED_SCOPES, Selection, glance, select
from dfcompile.choosing.sketches import OutlineOf, Sketches
from dfcompile.lowering import ExpansionTable, KnownAlternatives
from dfcompile.lowering.alternatives.bound import least_work, longest_chain
from dfcompile.options import Effort, ExpansionRule, Volumes
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions

_FEWER = 4  # one element in so many less at a time, where a choice waits for memory
_IN_VAIN = 2  # numbers of elements in a row that bring nothing better
_COMPARED_TASKS = 500  # of choices for fewer elements, beside the best by estimates: up to a second for each number
_FEW_CYCLES = 20_000  # of a model on one element: choices for fewer elements take up to a second each


class AutomaticChoice(Struct, frozen=True, eq=False):
    """What is known of a model before a number of processing elements is given.

    Attributes:
        outline_of: gives the model under a choice of expansions.
        known: its operators, each under the expansions that take it.
        table: what is registered.
        rules: of the user, which limit what is chosen from.
        granularity: of the user; ``None``: it is chosen.
        own: what the user wants of single operators, where others are chosen.
        limits: to what is compared with a choice for the time or the makespan.
        volumes: of edges.
        finish: passes over canonical DAGs.
    """

    outline_of: OutlineOf
    known: KnownAlternatives
    table: ExpansionTable
    rules: Sequence[ExpansionRule]
    granularity: Granularity | None
    volumes: Volumes
    finish: Callable[[CanonicalDag], CanonicalDag]
    own: Granularity = DECLARED
    limits: Limits = THOROUGH

    def on(self, options: ScheduleOptions, scores: Scores | None = None, machine: Machine | None = None) -> Selection:
        """Choose for a number of processing elements.

        Args:
            options: P, and how schedules are made.
            scores: say what is to be small; ``None``: the time on the machine, or without one the makespan.
            machine: with its memory.

        Raises:
            UserError: no choice is possible.
        """
        if scores is not None:
            return self._selected(scores, self._sketches(options, None))
        is_fast = options.effort is Effort.QUICK and options.max_fifo is None and not options.barrier
        limits = self.limits if is_fast else self.limits.of_slow_schedules()
        makespans = Makespans(self.volumes, options, self.finish, limits, machine)
        memory = None if machine is None else machine.memory
        sketches = self._sketches(options, memory)
        found = self._selected(makespans, sketches)
        work = sum(least_work(self.known).values())
        if work <= SMALL_WORK:
            least = max(-(-work // options.pes), longest_chain(self.known))
            found = self._refined(found, least, options, makespans, sketches)
        else:
            found = Relief(self._space(options.pes, limits), sketches, makespans).better(found)
            if work <= _FEW_CYCLES:
                found = self._for_fewer(found, options, makespans, sketches, _COMPARED_TASKS)
        return replace(found, made=makespans.made)

    def _for_fewer(
        self, known: Selection, options: ScheduleOptions, makespans: Makespans, sketches: Sketches, compared: int = 0
    ) -> Selection:
        """Return a choice, or if it waits for memory a better one of those for fewer processing elements.

        Fewer tasks at a time share memory there. They are scheduled on all elements. Beside what is best by its
        estimate choices of so many tasks together are ``compared``. See `_refined` for the other arguments.
        """
        pes = options.pes
        limits = replace(makespans.limits, tasks=compared, promising_tasks=0, shorter_tasks=0)
        while pes > 1 and _waits_for_memory(known, sketches):
            pes -= -(-pes // _FEWER)
            few = self._sketches(replace(options, pes=pes), sketches.memory)
            other = select(self._space(pes, makespans.limits), few, makespans, limits)
            known = _better(known, other, sketches)
        return known

    def _refined(
        self, known: Selection, least: int, options: ScheduleOptions, makespans: Makespans, sketches: Sketches
    ) -> Selection:
        """Return a choice for a small model, or a better one.

        If it waits for memory, choices that look promising on fewer processing elements are tried as well, since fewer
        tasks share memory there. They are scheduled on all elements.

        Args:
            known: the choice.
            least: cycles that no choice falls below.
            options: of schedules.
            makespans: gives the scores.
            sketches: of the model on all elements.
        """
        memory, pes = sketches.memory, options.pes
        refinement: Refinement | None = None
        vain = 0
        while pes and vain < _IN_VAIN:
            space = self._space(pes, makespans.limits, has_all_values=True)
            few = self._sketches(replace(options, pes=pes), memory)
            refinement = Refinement(space, few, makespans, refinement)
            better = _better(known, refinement.better(known, least), sketches)
            vain = vain + 1 if better is known else 0
            known = better
            if pes == options.pes:
                known = self._for_fewer(known, options, makespans, sketches)
            if not _waits_for_memory(known, sketches):
                break
            pes -= -(-pes // _FEWER)
        return known

    def _sketches(self, options: ScheduleOptions, memory: Memory | None) -> Sketches:
        return Sketches(self.outline_of, self.volumes, options.pes, options.effort, memory)

    def _selected(self, scores: Scores, sketches: Sketches) -> Selection:
        return select(self._space(sketches.pes, scores.limits), sketches, scores)

    def glance(self, pes: int) -> Selection | None:
        """Return about what `on` would choose, estimated alone; ``None`` of a large model."""
        if self.known.least_scopes > GLANCED_SCOPES:
            return None
        sketches = Sketches(self.outline_of, self.volumes, pes, Effort.QUICK)
        return glance(self._space(pes, NOTHING), sketches)

    def _space(self, pes: int, limits: Limits, *, has_all_values: bool = False) -> Space:
        looked_at = granularities(pes, self.known.least_scopes, limits.most_tasks(pes))
        if self.granularity is not None:
            looked_at = (self.granularity,)
        else:
            looked_at = tuple(replace(each, own=self.own.own, rest=self.own.rest) for each in looked_at)
        return space_of(self.known, self.table, self.rules, looked_at, pes, has_all_values=has_all_values)


def _waits_for_memory(known: Selection, sketches: Sketches) -> bool:
    """Return whether the schedule of a choice takes longer with memory than without."""
    return sketches.memory is not None and known.score is not None and round(known.score[0]) > known.score[1]


def _better(known: Selection, other: Selection, sketches: Sketches) -> Selection:
    """Return a choice, or if it is better another one, which was sketched on fewer elements, as on all of them."""
    if known.score is None or other.score is None or other.score >= known.score:
        return known
    sketch = sketches.of(other.sketch.candidate)
    assert sketch is not None  # it is lowered as on fewer elements
    return replace(known, sketch=sketch, score=other.score, expansions=other.expansions)

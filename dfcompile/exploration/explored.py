"""The way of an exploration: the space of a model, the search in it, jobs that run or ran before."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

from msgspec import Struct

from dfcompile.exploration.asked import Asked
from dfcompile.exploration.bounds import Bounds
from dfcompile.exploration.finer import Finer, finer_tasks
from dfcompile.exploration.job import Job, Outcome
from dfcompile.exploration.result_store import ResultStore
from dfcompile.exploration.search import Candidate, Found, search
from dfcompile.exploration.space import OfferedGroup, Space, choices_of, space_of
from dfcompile.exploration.workers import Workers
from dfcompile.frontend import Program
from dfcompile.lowering import ExpansionTable, addressed, known_alternatives, operator_origins
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, ExpansionRule
from dfcompile.records import replace

Notify = Callable[["Progress"], None]


class Progress(Struct, frozen=True):
    """How far an exploration is.

    Attributes:
        tries: that were made.
        of_tries: at most.
        gap: of the front.
        computed: jobs that ran now, and not before.
    """

    tries: int
    of_tries: int
    gap: float
    computed: int


class Explored(Struct, frozen=True, eq=False):
    """What an exploration found.

    Attributes:
        model: name of it.
        asked: of the user.
        groups: operators of one shape, and the names that were chosen from.
        found: by the search.
        computed: jobs that ran now; all others ran before.
        rests_on: addresses of all results that the search looked at.
        complex_types: complex element types of the model's arrays.
        finer: what tasks in pieces may bring, where they were not asked for.
    """

    model: str
    asked: Asked
    groups: tuple[OfferedGroup, ...]
    found: Found
    computed: int
    rests_on: tuple[str, ...]
    complex_types: tuple[str, ...]
    finer: tuple[Finer, ...] = ()

    @property
    def combinations(self) -> int:
        """Number of ways to lower the model."""
        return prod(len(group.options) for group in self.groups)

    def choices(self, picks: Sequence[int]) -> tuple[Choice, ...]:
        """Return the choices of one option per group."""
        return choices_of((group.origins, group.options[pick]) for group, pick in zip(self.groups, picks, strict=True))


def explore_space(
    program: Program, table: ExpansionTable, asked: Asked, store: ResultStore, workers: Workers, notify: Notify
) -> Explored:
    """Find the Pareto set of a model.

    Args:
        program: of level 0.
        table: of expansions.
        asked: of the user.
        store: of results that were found before.
        workers: that run jobs.
        notify: is told how far it is.

    Raises:
        UserError: a rule fits no operator, a stage refuses the model, or workers die.
    """
    outlined = OutlinedModel(program, table)
    named = {name for rule in asked.rules for name in rule.names}
    known = known_alternatives(program, table.offering(named))
    space = space_of(known, outlined.outline(()), _addressed(asked.rules, program, table))
    jobs = _Jobs(asked, space, outlined, store, workers)
    found = search(
        asked,
        space,
        Bounds(asked, space, outlined),
        jobs.outcomes,
        lambda tries, gap: notify(Progress(tries, asked.tries, gap, jobs.computed)),
    )
    rests_on = tuple(jobs.addresses)
    finer = finer_tasks(asked, space, outlined, found.front)
    return Explored(program.name, asked, space.offered, found, jobs.computed, rests_on, program.complex_types, finer)


def _addressed(rules: Sequence[ExpansionRule], program: Program, table: ExpansionTable) -> tuple[ExpansionRule, ...]:
    """Return rules whose types, names and patterns are told apart, now that the model is known."""
    origins = operator_origins(program)
    found = []
    for rule in rules:
        choice = addressed(Choice(rule.op_type, rule.names[0], rule.origin), table, origins)
        found.append(replace(rule, op_type=choice.op_type, origin=choice.origin))
    return tuple(found)


class _Jobs:
    """Makes candidates jobs, and runs those whose results are not in the store."""

    def __init__(
        self, asked: Asked, space: Space, outlined: OutlinedModel, store: ResultStore, workers: Workers
    ) -> None:
        self._asked, self._space, self._outlined = asked, space, outlined
        self._store, self._workers = store, workers
        self.computed = 0
        self.addresses: dict[str, None] = {}  # of all results that were asked for

    def outcomes(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Outcome, ...]]:
        """Yield the outcomes of candidates in their order."""
        asked = self._asked
        jobs = [
            Job(
                self._outlined.outline(self._space.choices(candidate.picks)).graph,
                asked.granularities[candidate.granularity],
                candidate.pes,
                asked.partition,
                asked.memories,
            )
            for candidate in candidates
        ]
        addresses = [job.lowering for job in jobs]
        places = [[f"{address}/{memory}" for memory in asked.memories] for address in addresses]
        self.addresses.update((place, None) for row in places for place in row)
        known = [[self._store.get(place) for place in row] for row in places]
        found: dict[int, tuple[Outcome, ...]] = {
            number: tuple(each for each in row if each is not None) for number, row in enumerate(known)
        }
        missing = [number for number, row in found.items() if len(row) < len(asked.memories)]
        for place, outcomes in self._workers.run([jobs[number] for number in missing]):
            number = missing[place]
            found[number] = outcomes
            self.computed += 1
            for outcome in outcomes:
                self._store.put(f"{addresses[number]}/{outcome.memory_bytes}", outcome)
        for number in range(len(jobs)):
            yield found[number]

"""The way of an exploration: the space of a model, the search in it, jobs that run or ran before.

Results are kept in a file that several runs share; each is checked as any input is.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path

import msgspec
from msgspec import Struct

from dfcompile.canonical_dag.extraction.granularity import DECLARED, Granularity
from dfcompile.choosing.candidate import PIECES_PER_ELEMENT
from dfcompile.errors import UserError
from dfcompile.exploration.asked import Asked, Objective
from dfcompile.exploration.job import Job, Outcome
from dfcompile.exploration.search import Candidate, Point, Search, SearchResult
from dfcompile.exploration.space import Bounds, OfferedGroup, Space, choices_of, estimated_cycles, space_of
from dfcompile.exploration.workers import Workers
from dfcompile.frontend import Program
from dfcompile.host.kept_lines import KeptLines, Warn
from dfcompile.lowering import ExpansionTable, addressed, known_alternatives, operator_origins
from dfcompile.lowering.alternatives.outlined import Outline, OutlinedModel
from dfcompile.options import Choice, ExpansionRule
from dfcompile.records import replace


def default_store() -> Path:
    """Return where results are kept if nobody says it: in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")  # a path without a leading slash is to be ignored
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    return base / "dfcompile" / "exploration.cache"


class ResultStore:
    """Results by address. One that is damaged, or not possible, is said and forgotten."""

    def __init__(self, path: Path, warn: Warn) -> None:
        """Open the file, or make it.

        Args:
            path: of it.
            warn: is told of each damage that is found.

        Raises:
            UserError: the file cannot be read or written, or is an input of this run.
        """
        self._lines = KeptLines(path, warn)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def get(self, key: str) -> Outcome | None:
        """Return the result of an address; ``None`` if there is none, or one that cannot be its."""
        name = f"result/{key}"
        text = self._lines.get(name)
        if text is None:
            return None
        try:
            found = msgspec.json.decode(text, type=Outcome)
        except (ValueError, RecursionError):  # no JSON, of another form, or no text
            found = None
        if found is None or not found.is_possible or str(found.memory_bytes) != key.rpartition("/")[2]:
            self._lines.refuse(name, "computed anew")
            return None
        return found

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep a result."""
        self._lines.put(f"result/{key}", msgspec.json.encode(outcome))


Notify = Callable[["Progress"], None]
_WORTH_SAYING = 0.9  # of the makespan


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


class Explored(Struct, frozen=True, eq=False, kw_only=True):
    """What an exploration found.

    Attributes:
        model: name of it.
        groups: operators of one shape, and the names that were chosen from.
        found: by the search.
        complex_types: complex element types of the model's arrays.
        finer: what tasks in pieces may bring, where they were not asked for.
        asked: of the user.
        computed: jobs that ran now; all others ran before.
    """

    model: str
    groups: tuple[OfferedGroup, ...]
    found: SearchResult
    complex_types: tuple[str, ...]
    finer: tuple[Finer, ...]
    asked: Asked
    computed: int

    @property
    def combinations(self) -> int:
        """Number of ways to lower the model."""
        return prod(len(group.options) for group in self.groups)

    def choices(self, picks: Sequence[int]) -> tuple[Choice, ...]:
        """Return the choices of one option per group."""
        return choices_of(self.groups, picks)


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
    found = Search(
        asked,
        space,
        Bounds(asked, space, outlined),
        jobs.outcomes,
        lambda tries, gap: notify(Progress(tries, asked.tries, gap, jobs.computed)),
    ).run()
    return Explored(
        model=program.name,
        groups=space.offered,
        found=found,
        complex_types=program.complex_types,
        finer=_finer_tasks(asked, space, outlined, found.front),
        asked=asked,
        computed=jobs.computed,
    )


def _addressed(rules: Sequence[ExpansionRule], program: Program, table: ExpansionTable) -> tuple[ExpansionRule, ...]:
    """Return rules whose types, names and patterns are told apart, now that the model is known."""
    origins = operator_origins(program)
    choices = (addressed(Choice(rule.op_type, rule.names[0], rule.origin), table, origins) for rule in rules)
    pairs = zip(rules, choices, strict=True)
    return tuple(replace(rule, op_type=choice.op_type, origin=choice.origin) for rule, choice in pairs)


def _finer_tasks(asked: Asked, space: Space, outlined: OutlinedModel, front: Sequence[Point]) -> tuple[Finer, ...]:
    """Return by how much the fastest points of a front may be faster in pieces, where that is worth saying."""
    if asked.granularities != (DECLARED,) or Objective.MAKESPAN not in asked.objectives:
        return ()
    found = []
    for pes in asked.pes:
        points = [point for point in front if point.candidate.pes == pes]
        if points:
            best = min(points, key=lambda point: (_makespan(asked, point), point.candidate.picks))
            cycles = _makespan(asked, best)
            outline = outlined.outline(choices_of(space.groups, best.candidate.picks))
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
        with suppress(UserError):  # more tasks than a canonical DAG can hold
            yield estimated_cycles(outline.graph, Granularity(pieces=pieces), pes), pieces


class _Jobs:
    """Makes candidates jobs, and runs those whose results are not in the store."""

    def __init__(
        self, asked: Asked, space: Space, outlined: OutlinedModel, store: ResultStore, workers: Workers
    ) -> None:
        self._asked, self._space, self._outlined = asked, space, outlined
        self._store, self._workers = store, workers
        self.computed = 0

    def outcomes(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Outcome, ...]]:
        """Yield the outcomes of candidates in their order."""
        asked = self._asked
        jobs = []
        for candidate in candidates:
            graph = self._outlined.outline(choices_of(self._space.groups, candidate.picks)).graph
            granularity = asked.granularities[candidate.granularity]
            jobs.append(Job(graph, granularity, candidate.pes, asked.partition, asked.memories))
        places = [job.keys for job in jobs]
        known = [[self._store.get(place) for place in row] for row in places]
        found: dict[int, tuple[Outcome, ...]] = {
            number: tuple(each for each in row if each is not None) for number, row in enumerate(known)
        }
        missing = [number for number, row in found.items() if len(row) < len(asked.memories)]
        missing.sort(key=lambda number: -self._space.tasks(candidates[number].picks))  # none is waited for in the end
        for place, outcomes in self._workers.run([jobs[number] for number in missing]):
            number = missing[place]
            found[number] = outcomes
            self.computed += 1
            for key, outcome in zip(places[number], outcomes, strict=True):
                self._store.put(key, outcome)
        for number in range(len(jobs)):
            yield found[number]

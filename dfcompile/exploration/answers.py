"""Whole answers that were found before: of a model that is data, its content and the question tell the answer."""

import hashlib
from functools import cache
from importlib.metadata import version
from math import inf, prod
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from dfcompile.exploration.asked import Asked
from dfcompile.exploration.explored import Explored
from dfcompile.exploration.finer import Finer
from dfcompile.exploration.job import Natural, Outcome
from dfcompile.exploration.objectives import figures_of
from dfcompile.exploration.result_store import ResultStore
from dfcompile.exploration.search import Candidate, Found, Point
from dfcompile.exploration.space import OfferedGroup
from dfcompile.frontend import ReadOptions, files_of_data

_PACKAGES = ("dfcompile", "dace", "networkx", "numpy", "onnx", "protobuf", "pulp")  # that read, lower and schedule
_MOST_BITS = 2**13  # of a number of combinations

_Part = Annotated[float, Meta(ge=0)]


class _Point(Struct, frozen=True, forbid_unknown_fields=True):
    """A point of the front, without the figures that follow."""

    picks: tuple[Natural, ...]
    granularity: Natural
    pes: Natural
    outcome: Outcome


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer as it is kept; an infinite gap is none."""

    model: str
    rests_on: tuple[str, ...]
    complex_types: tuple[Annotated[str, Meta(pattern="^complex(64|128)$")], ...]
    groups: tuple[OfferedGroup, ...]
    front: Annotated[tuple[_Point, ...], Meta(min_length=1)]
    schedules: Natural
    tries: Natural
    open_combinations: Annotated[int, Meta(ge=0)]
    too_large: tuple[str, ...]
    gap: _Part | None
    gap_of_schedulable: _Part | None
    finer: tuple[Finer, ...]

    def fits(self, asked: Asked) -> bool:
        """Whether the points are of the space that is asked about, and what is said of it fits together."""
        sizes = [len(group.options) for group in self.groups]
        return (
            (self.gap == 0) is (self.open_combinations == 0)
            and _infinite(self.gap_of_schedulable) <= _infinite(self.gap)
            and all(group.origins for group in self.groups)
            and prod(sizes).bit_length() <= _MOST_BITS
            and all(self._has(point, asked, sizes) for point in self.front)
            and all(each.pes in asked.pes and each.estimated_cycles for each in self.finer)
        )

    def _has(self, point: _Point, asked: Asked, sizes: list[int]) -> bool:
        return (
            point.pes in asked.pes
            and point.granularity < len(asked.granularities)
            and point.outcome.memory_bytes in asked.memories
            and len(point.picks) == len(sizes)
            and all(pick < size for pick, size in zip(point.picks, sizes, strict=True))
        )


class Question(Struct, frozen=True):
    """What is asked of which model.

    Attributes:
        asked: of the user.
        model: its file.
        reading: what it is told of the model.
    """

    asked: Asked
    model: Path
    reading: ReadOptions

    def key(self) -> str | None:
        """Return a hash of the question, the model's files as they are now and all sources that answer it.

        ``None`` if the model is code, or no model: whoever reads it says what is wrong.
        """
        files = files_of_data(self.model)
        if files is None:
            return None
        sizes = (sorted(self.reading.shapes.items()), sorted(self.reading.dims.items()))
        told = (self.asked, self.model.stem, *sizes, sorted(self.reading.fixed_inputs.items()))
        try:
            contents = [(name, _content(path)) for name, path in files.items()]
        except OSError:
            return None
        return hashlib.sha256(f"{_sources()}\n{contents!r}\n{told!r}".encode()).hexdigest()


def known_answer(key: str, question: Question, store: ResultStore) -> Explored | None:
    """Return the answer to a question if it is kept, and all results that it rests on are.

    Results that are gone or damaged are computed anew, and so is the answer.
    """
    answer = store.answer(key, _Answer, lambda kept: kept.fits(question.asked))
    if answer is None:
        return None
    results = [store.get(each) for each in answer.rests_on]
    if None in results:
        return None
    if not {point.outcome for point in answer.front} <= set(results):
        store.refuse_answer(key)
        return None
    found = Found(
        front=tuple(_point(each, question.asked) for each in answer.front),
        schedules=answer.schedules,
        tries=answer.tries,
        open_combinations=answer.open_combinations,
        too_large=answer.too_large,
        gap=_infinite(answer.gap),
        gap_of_schedulable=_infinite(answer.gap_of_schedulable),
    )
    rests_on, complex_types = answer.rests_on, answer.complex_types
    return Explored(answer.model, question.asked, answer.groups, found, 0, rests_on, complex_types, answer.finer)


def keep_answer(key: str, question: Question, explored: Explored, store: ResultStore) -> None:
    """Keep an answer, unless the model's files are no longer what they were when the question was asked.

    Args:
        key: of the question when it was asked.
        question: that it answers.
        explored: the answer.
        store: where it is kept.
    """
    if question.key() != key:
        return
    found = explored.found
    answer = _Answer(
        model=explored.model,
        rests_on=explored.rests_on,
        complex_types=explored.complex_types,
        groups=explored.groups,
        front=tuple(_kept(point) for point in found.front),
        schedules=found.schedules,
        tries=found.tries,
        open_combinations=found.open_combinations,
        too_large=found.too_large,
        gap=None if found.gap == inf else found.gap,
        gap_of_schedulable=None if found.gap_of_schedulable == inf else found.gap_of_schedulable,
        finer=explored.finer,
    )
    store.put_answer(key, answer)


def _infinite(gap: float | None) -> float:
    return inf if gap is None else gap


def _kept(point: Point) -> _Point:
    candidate = point.candidate
    return _Point(candidate.picks, candidate.granularity, candidate.pes, point.outcome)


def _point(kept: _Point, asked: Asked) -> Point:
    outcome = kept.outcome
    machine = asked.machine(kept.pes, outcome.memory_bytes)
    figures = figures_of(asked.objectives, machine, outcome.makespan_cycles, outcome.io_bytes)
    return Point(Candidate(kept.picks, kept.granularity, kept.pes), outcome, figures)


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _sources() -> str:
    """Return a hash of all that makes an answer of a model: our sources and the versions of what they use."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()

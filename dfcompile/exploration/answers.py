"""Whole answers that were found before: of a model that is data, its content and the question tell the answer."""

import hashlib
from functools import cache
from importlib.metadata import version
from math import inf, isfinite, prod
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from dfcompile.exploration.asked import Asked
from dfcompile.exploration.explored import Explored, Finer
from dfcompile.exploration.result_store import ResultStore
from dfcompile.exploration.search import Found, Point
from dfcompile.exploration.space import OfferedGroup
from dfcompile.frontend import ReadOptions, files_of_data
from dfcompile.records import replace

_PACKAGES = ("dfcompile", "dace", "networkx", "numpy", "onnx", "protobuf", "pulp")  # that read, lower and schedule
_MOST_BITS = 2**13  # of a number of combinations

_Part = Annotated[float, Meta(ge=0)]


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer as it is kept; an infinite gap is none, so that gaps stand beside what was found."""

    model: str
    rests_on: tuple[str, ...]
    complex_types: tuple[Annotated[str, Meta(pattern="^complex(64|128)$")], ...]
    groups: tuple[OfferedGroup, ...]
    found: Found
    gap: _Part | None
    gap_of_schedulable: _Part | None
    finer: tuple[Finer, ...]

    def fits(self, asked: Asked) -> bool:
        """Whether the points are of the space that is asked about, and what is said of it fits together."""
        sizes = [len(group.options) for group in self.groups]
        return (
            bool(self.found.front)
            and (self.gap == 0) is (self.found.open_combinations == 0)
            and _infinite(self.gap_of_schedulable) <= _infinite(self.gap)
            and all(group.origins for group in self.groups)
            and prod(sizes).bit_length() <= _MOST_BITS
            and all(_is_of(point, asked, sizes) for point in self.found.front)
            and all(each.pes in asked.pes and each.estimated_cycles for each in self.finer)
        )


def _is_of(point: Point, asked: Asked, sizes: list[int]) -> bool:
    """Return whether a point is of the space that is asked about, with the figures that follow."""
    candidate = point.candidate
    return (
        candidate.pes in asked.pes
        and candidate.granularity < len(asked.granularities)
        and point.outcome.memory_bytes in asked.memories
        and len(candidate.picks) == len(sizes)
        and all(pick < size for pick, size in zip(candidate.picks, sizes, strict=True))
        and point == Point.of(asked, candidate, point.outcome)
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
    if not {point.outcome for point in answer.found.front} <= set(results):
        store.refuse_answer(key)
        return None
    gaps = _infinite(answer.gap), _infinite(answer.gap_of_schedulable)
    return Explored(
        model=answer.model,
        asked=question.asked,
        groups=answer.groups,
        found=replace(answer.found, gap=gaps[0], gap_of_schedulable=gaps[1]),
        computed=0,
        rests_on=answer.rests_on,
        complex_types=answer.complex_types,
        finer=answer.finer,
    )


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
    gap, gap_of_schedulable = explored.found.gap, explored.found.gap_of_schedulable
    answer = _Answer(
        model=explored.model,
        rests_on=explored.rests_on,
        complex_types=explored.complex_types,
        groups=explored.groups,
        found=replace(explored.found, gap=0.0, gap_of_schedulable=0.0),
        gap=gap if isfinite(gap) else None,
        gap_of_schedulable=gap_of_schedulable if isfinite(gap_of_schedulable) else None,
        finer=explored.finer,
    )
    store.put_answer(key, answer)


def _infinite(gap: float | None) -> float:
    return inf if gap is None else gap


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

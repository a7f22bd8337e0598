"""Whole answers that were found before: of a model that is data, its content and the question tell the answer."""

import hashlib
from functools import cache
from math import inf, isfinite, prod
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from dfcompile.exploration.asked import Asked
from dfcompile.exploration.explored import Answer, Explored
from dfcompile.exploration.job import hash_of
from dfcompile.exploration.result_store import ResultStore
from dfcompile.exploration.search import Point
from dfcompile.frontend import ReadOptions, files_of_data
from dfcompile.records import replace

_PACKAGES = ("dfcompile", "dace", "networkx", "numpy", "onnx", "protobuf", "pulp")  # that read, lower and schedule
_MOST_BITS = 2**13  # of a number of combinations

_Part = Annotated[float, Meta(ge=0)]


class _Kept(Answer, frozen=True, kw_only=True):
    """An answer as it is kept; an infinite gap is none, so that gaps stand beside what was found."""

    gap: _Part | None
    gap_of_schedulable: _Part | None

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
            contents = hash_of((), files)
        except OSError:
            return None
        return hashlib.sha256(f"{_sources()}\n{contents}\n{told!r}".encode()).hexdigest()


def known_answer(key: str, question: Question, store: ResultStore) -> Explored | None:
    """Return the answer to a question if it is kept, and all results that it rests on are.

    Results that are gone or damaged are computed anew, and so is the answer.
    """
    answer = store.answer(key, _Kept, lambda kept: kept.fits(question.asked))
    if answer is None:
        return None
    results = [store.get(each) for each in answer.rests_on]
    if None in results:
        return None
    if not {point.outcome for point in answer.found.front} <= set(results):
        store.refuse_answer(key)
        return None
    gap, gap_of_schedulable = _infinite(answer.gap), _infinite(answer.gap_of_schedulable)
    search = replace(answer.found, gap=gap, gap_of_schedulable=gap_of_schedulable)
    found = {**_parts(answer), "found": search}
    return Explored(**found, asked=question.asked, computed=0)


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
    gaps = explored.found.gap, explored.found.gap_of_schedulable
    gap, gap_of_schedulable = (gap if isfinite(gap) else None for gap in gaps)
    found = {**_parts(explored), "found": replace(explored.found, gap=0.0, gap_of_schedulable=0.0)}
    store.put_answer(key, _Kept(**found, gap=gap, gap_of_schedulable=gap_of_schedulable))


def _parts(answer: Answer) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in Answer.__struct_fields__}


def _infinite(gap: float | None) -> float:
    return inf if gap is None else gap


@cache
def _sources() -> str:
    """Return a hash of all that makes an answer of a model: our sources and the versions of what they use."""
    root = Path(__file__).parents[1]
    return hash_of(_PACKAGES, {str(file.relative_to(root)): file for file in sorted(root.rglob("*.py"))})

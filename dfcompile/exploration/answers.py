"""Whole answers that were found before: of a model that is data, its content and the question tell the answer."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from msgspec import Struct, structs

from dfcompile.exploration.asked import Asked
from dfcompile.exploration.explored import Explored
from dfcompile.exploration.finer import Finer
from dfcompile.exploration.job import Outcome
from dfcompile.exploration.objectives import figures_of
from dfcompile.exploration.result_store import ResultStore
from dfcompile.exploration.search import Candidate, Found, Point
from dfcompile.exploration.space import OfferedGroup
from dfcompile.frontend import ReadOptions

_PACKAGES = ("dfcompile", "dace", "networkx", "numpy", "onnx", "protobuf", "pulp")  # that read, lower and schedule


class _Outcome(TypedDict):
    memory_bytes: int
    makespan_cycles: int
    is_replayed: bool
    io_bytes: int
    all_io_bytes: int
    held_bytes: int
    on_chip: list[str]
    tasks: int
    blocks: int


class _Point(TypedDict):
    picks: list[int]
    granularity: int
    pes: int
    outcome: _Outcome


class _Group(TypedDict):
    origins: list[str]
    op_type: str
    options: list[list[list[str]]]


class _Answer(TypedDict):
    model: str
    files: list[list[str]]
    rests_on: list[str]
    complex_types: list[str]
    groups: list[_Group]
    front: list[_Point]
    schedules: int
    tries: int
    open_combinations: int
    too_large: list[str]
    gap: float
    gap_of_schedulable: float
    finer: list[dict[str, int]]


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

    def key(self) -> str:
        """Return a hash of the question, the model's file as it is now and all sources that answer it.

        Raises:
            OSError: the file cannot be read.
        """
        sizes = (sorted(self.reading.shapes.items()), sorted(self.reading.dims.items()))
        told = (self.asked, self.model.stem, *sizes, sorted(self.reading.fixed_inputs.items()))
        return hashlib.sha256(f"{_sources()}\n{_content(self.model)}\n{told!r}".encode()).hexdigest()


def known_answer(key: str, question: Question, store: ResultStore) -> Explored | None:
    """Return the answer to a question if it is kept, all files of the model and all results that it rests on unchanged.

    Results that are gone or corrupted are computed anew, and so is the answer.
    """
    text = store.answer(key)
    if text is None:
        return None
    answer: _Answer = json.loads(text)
    if not all(_is_as_it_was(question.model.parent / name, content) for name, content in answer["files"]):
        return None
    if any(store.get(each) is None for each in answer["rests_on"]):
        return None
    return _explored(answer, question.asked)


def keep_answer(key: str, question: Question, explored: Explored, files: Sequence[Path], store: ResultStore) -> None:
    """Keep an answer, unless the model's file is no longer what it was when the question was asked.

    Args:
        key: of the question when it was asked.
        question: that it answers.
        explored: the answer.
        files: of the model, whose content alone tells what it is.
        store: where it is kept.
    """
    if question.key() != key:
        return
    folder = question.model.parent.resolve()
    answer: _Answer = {
        "model": explored.model,
        "files": [
            [str(path.resolve().relative_to(folder)), _content(path)] for path in files if path != question.model
        ],
        "rests_on": list(explored.rests_on),
        "complex_types": list(explored.complex_types),
        "groups": [
            {
                "origins": list(group.origins),
                "op_type": group.op_type,
                "options": [[list(pair) for pair in names] for names in group.options],
            }
            for group in explored.groups
        ],
        "front": [_kept(point) for point in explored.found.front],
        "schedules": explored.found.schedules,
        "tries": explored.found.tries,
        "open_combinations": explored.found.open_combinations,
        "too_large": list(explored.found.too_large),
        "gap": explored.found.gap,
        "gap_of_schedulable": explored.found.gap_of_schedulable,
        "finer": [structs.asdict(each) for each in explored.finer],
    }
    store.put_answer(key, json.dumps(answer))


def _kept(point: Point) -> _Point:
    candidate, outcome = point.candidate, point.outcome
    values: _Outcome = {**asdict(outcome), "on_chip": list(outcome.on_chip)}  # type: ignore[typeddict-item]  # its fields
    return {
        "picks": list(candidate.picks),
        "granularity": candidate.granularity,
        "pes": candidate.pes,
        "outcome": values,
    }


def _explored(answer: _Answer, asked: Asked) -> Explored:
    groups = tuple(
        OfferedGroup(
            tuple(group["origins"]),
            group["op_type"],
            tuple(tuple((op_type, name) for op_type, name in names) for names in group["options"]),
        )
        for group in answer["groups"]
    )
    found = Found(
        front=tuple(_point(each, asked) for each in answer["front"]),
        schedules=answer["schedules"],
        tries=answer["tries"],
        open_combinations=answer["open_combinations"],
        too_large=tuple(answer["too_large"]),
        gap=answer["gap"],
        gap_of_schedulable=answer["gap_of_schedulable"],
    )
    rests_on, complex_types = tuple(answer["rests_on"]), tuple(answer["complex_types"])
    finer = tuple(Finer(**each) for each in answer["finer"])
    return Explored(answer["model"], asked, groups, found, 0, rests_on, complex_types, finer)


def _point(kept: _Point, asked: Asked) -> Point:
    values = kept["outcome"]
    outcome = Outcome(
        memory_bytes=values["memory_bytes"],
        makespan_cycles=values["makespan_cycles"],
        is_replayed=values["is_replayed"],
        io_bytes=values["io_bytes"],
        all_io_bytes=values["all_io_bytes"],
        held_bytes=values["held_bytes"],
        on_chip=tuple(values["on_chip"]),
        tasks=values["tasks"],
        blocks=values["blocks"],
    )
    machine = asked.machine(kept["pes"], outcome.memory_bytes)
    figures = figures_of(asked.objectives, machine, outcome.makespan_cycles, outcome.io_bytes)
    return Point(Candidate(tuple(kept["picks"]), kept["granularity"], kept["pes"]), outcome, figures)


def _is_as_it_was(path: Path, content: str) -> bool:
    try:
        return _content(path) == content
    except OSError:
        return False  # whoever reads the model says what is wrong


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

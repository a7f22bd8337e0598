"""Results that were found before, in a file that several runs share; each is checked as any input is."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from dfcompile.exploration.job import Outcome
from dfcompile.host.kept_lines import KeptLines, Warn

_AGAIN = "computed anew"

Kept = TypeVar("Kept")
Fits = Callable[[Kept], bool]


def default_store() -> Path:
    """Return where results are kept if nobody says it: in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")  # a path without a leading slash is to be ignored
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    return base / "dfcompile" / "exploration.cache"


class ResultStore:
    """Results by address, and answers by question. One that is damaged, or not possible, is said and forgotten."""

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
        memory = key.rpartition("/")[2]
        return self._checked(f"result/{key}", Outcome, lambda one: one.is_possible and str(one.memory_bytes) == memory)

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep a result."""
        self._lines.put(f"result/{key}", msgspec.json.encode(outcome))

    def answer(self, key: str, form: type[Kept], fits: Fits[Kept]) -> Kept | None:
        """Return the whole answer to a question; ``None`` if there is none, or one that cannot be its.

        Args:
            key: of the question.
            form: type of an answer.
            fits: whether an answer of this form fits the question.
        """
        return self._checked(f"answer/{key}", form, fits)

    def refuse_answer(self, key: str) -> None:
        """Forget an answer that the results do not give, and say so."""
        self._lines.refuse(f"answer/{key}", _AGAIN)

    def put_answer(self, key: str, answer: object) -> None:
        """Keep a whole answer."""
        self._lines.put(f"answer/{key}", msgspec.json.encode(answer))

    def _checked(self, name: str, form: type[Kept], fits: Fits[Kept]) -> Kept | None:
        text = self._lines.get(name)
        if text is None:
            return None
        try:
            found = msgspec.json.decode(text, type=form)
        except (ValueError, RecursionError):  # no JSON, of another form, or no text
            found = None
        if found is None or not fits(found):
            self._lines.refuse(name, _AGAIN)
            return None
        return found

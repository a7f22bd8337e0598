"""Results that were found before, in a file that several runs share; each is checked as any input is."""

import os
from pathlib import Path

import msgspec

from dfcompile.exploration.job import Outcome
from dfcompile.host.kept_lines import KeptLines, Warn


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

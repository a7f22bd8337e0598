"""Results that were found before: a SQLite file, one row per result under its address, which several runs share."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.exploration.job import Outcome

_PATIENCE_S = 60.0  # for another run that is writing
_SCHEMA = """CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, checksum TEXT NOT NULL, memory_bytes INTEGER, makespan_cycles INTEGER, is_replayed INTEGER,
    io_bytes INTEGER, all_io_bytes INTEGER, held_bytes INTEGER, on_chip TEXT, tasks INTEGER, blocks INTEGER
)"""
_ANSWERS = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, checksum TEXT NOT NULL, answer TEXT NOT NULL)"
_COLUMNS = ("memory_bytes", "makespan_cycles", "is_replayed", "io_bytes", "all_io_bytes", "held_bytes", "on_chip",
            "tasks", "blocks")  # fmt: skip

Row = tuple[int | str, ...]
Warn = Callable[[str], None]


def default_store() -> Path:
    """Return where results are kept if nobody says it: in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")  # a path without a leading slash is to be ignored
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    return base / "dfcompile" / "exploration.sqlite"


class ResultStore:
    """Results by address. Rows are written one by one, whole or not at all; what is corrupted is said and forgotten."""

    def __init__(self, path: Path, warn: Warn) -> None:
        """Open the file, or make it.

        Args:
            path: of it.
            warn: is told of each corruption that is found.

        Raises:
            UserError: the file cannot be read or written, or is something else than a store.
        """
        self._path, self._warn = path, warn
        self._database = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cache {str(self._path)!r}: {error.strerror}") from error
        with self._named():
            try:
                return _connected(self._path)
            except sqlite3.OperationalError:
                raise  # no right to write, or locked: the file itself is as it should be
            except sqlite3.DatabaseError:
                self._set_aside()
                return _connected(self._path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def get(self, key: str) -> Outcome | None:
        """Return the result of an address; ``None`` if there is none, or one that was corrupted."""
        with self._named():
            try:
                query = f"SELECT checksum, {', '.join(_COLUMNS)} FROM results WHERE key = ?"  # noqa: S608  # our names
                row = self._database.execute(query, (key,)).fetchone()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._renew()
                return None
        if row is None:
            return None
        found = _outcome(row[1:]) if row[0] == _checksum(key, row[1:]) else None
        if found is None:
            self._warn(f"cache {str(self._path)!r}: entry {key[:12]}… is corrupted: computed anew")
            with self._named(), self._database:  # said once; what another run has put there since stays
                self._database.execute("DELETE FROM results WHERE key = ? AND checksum = ?", (key, row[0]))
        return found

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep a result."""
        row = _row(outcome)
        with self._named():
            try:
                self._insert(key, row)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._renew()
                self._insert(key, row)

    def answer(self, key: str) -> str | None:
        """Return the text of a whole answer; ``None`` if there is none, or one that was corrupted."""
        with self._named():
            try:
                query = "SELECT checksum, answer FROM answers WHERE key = ?"
                row = self._database.execute(query, (key,)).fetchone()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._renew()
                return None
        if row is None:
            return None
        if row[0] != _checksum(key, (str(row[1]),)):
            self._warn(f"cache {str(self._path)!r}: answer {key[:12]}… is corrupted: found anew")
            return None
        return str(row[1])

    def put_answer(self, key: str, text: str) -> None:
        """Keep the text of a whole answer."""
        with self._named(), self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO answers (key, checksum, answer) VALUES (?, ?, ?)",
                (key, _checksum(key, (text,)), text),
            )

    def _insert(self, key: str, row: Row) -> None:
        places = ", ".join("?" * (len(row) + 2))
        with self._database:
            self._database.execute(
                f"INSERT OR REPLACE INTO results (key, checksum, {', '.join(_COLUMNS)}) VALUES ({places})",  # noqa: S608
                (key, _checksum(key, row), *row),
            )

    def _renew(self) -> None:
        self._database.close()
        self._set_aside()
        self._database = _connected(self._path)

    def _set_aside(self) -> None:
        """Move a file that is no database any more out of the way."""
        self._warn(f"cache {str(self._path)!r}: is corrupted: kept as {self._path.name}.corrupted, begun anew")
        for ending in ("", "-wal", "-shm"):
            file = self._path.with_name(self._path.name + ending)
            if file.exists():
                file.replace(self._path.with_name(f"{self._path.name}.corrupted{ending}"))

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(f"cache {str(self._path)!r}: {error} (--cache FILE names another)") from error


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_PATIENCE_S)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        with database:
            database.execute(_SCHEMA)
            database.execute(_ANSWERS)
        database.execute(f"SELECT checksum, {', '.join(_COLUMNS)} FROM results LIMIT 1").fetchone()  # noqa: S608
    except sqlite3.Error:
        database.close()
        raise
    return database


def _row(outcome: Outcome) -> Row:
    values = {**asdict(outcome), "on_chip": json.dumps(outcome.on_chip), "is_replayed": int(outcome.is_replayed)}
    return tuple(values[name] for name in _COLUMNS)


def _outcome(row: Row) -> Outcome:
    values = dict(zip(_COLUMNS, row, strict=True))
    return Outcome(
        memory_bytes=int(values["memory_bytes"]),
        makespan_cycles=int(values["makespan_cycles"]),
        is_replayed=bool(values["is_replayed"]),
        io_bytes=int(values["io_bytes"]),
        all_io_bytes=int(values["all_io_bytes"]),
        held_bytes=int(values["held_bytes"]),
        on_chip=tuple(json.loads(str(values["on_chip"]))),
        tasks=int(values["tasks"]),
        blocks=int(values["blocks"]),
    )


def _checksum(key: str, row: Row) -> str:
    return hashlib.sha256(repr((key, row)).encode()).hexdigest()

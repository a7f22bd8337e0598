"""Results on disk: corruption is noticed, said and mended; several runs write to one file."""

import sqlite3
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.exploration.job import Outcome
from dfcompile.exploration.result_store import ResultStore, default_store

OUTCOME = Outcome(256, 12, True, 34, 56, 78, ("a", "b"), 9, 2)


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    said: list[str] = []
    store = ResultStore(tmp_path / "new" / "c.sqlite", said.append)
    store.put("k", OUTCOME)
    store.close()
    again = ResultStore(tmp_path / "new" / "c.sqlite", said.append)

    assert again.get("k") == OUTCOME
    assert again.get("other") is None
    assert said == []


@pytest.mark.parametrize("column", ["makespan_cycles", "io_bytes", "on_chip", "checksum", "is_replayed"])
def test_corrupted_entry_is_said_and_forgotten(tmp_path: Path, column: str) -> None:
    said: list[str] = []
    store = ResultStore(tmp_path / "c.sqlite", said.append)
    store.put("k", OUTCOME)
    with sqlite3.connect(tmp_path / "c.sqlite") as database:
        database.execute(f"UPDATE results SET {column} = 0")
    database.close()

    assert store.get("k") is None
    assert len(said) == 1
    assert "corrupted" in said[0]
    store.put("k", OUTCOME)
    assert store.get("k") == OUTCOME


def test_corrupted_file_is_said_and_set_aside(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "c.sqlite").write_bytes(b"no database at all" * 100)
    store = ResultStore(tmp_path / "c.sqlite", said.append)
    store.put("k", OUTCOME)

    assert store.get("k") == OUTCOME
    assert "begun anew" in said[0]
    assert (tmp_path / "c.sqlite.corrupted").read_bytes().startswith(b"no database")


def test_two_runs_share_a_file(tmp_path: Path) -> None:
    one, other = (ResultStore(tmp_path / "c.sqlite", print) for _ in range(2))
    for number in range(20):
        (one if number % 2 else other).put(f"k{number}", OUTCOME)

    assert all(one.get(f"k{number}") == other.get(f"k{number}") == OUTCOME for number in range(20))


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UserError, match=r"^cache '.*/file/c.sqlite': "):
        ResultStore(tmp_path / "file" / "c.sqlite", print)
    with pytest.raises(UserError, match=r"^cache .*unable to open"):
        ResultStore(tmp_path, print)


def test_default_is_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert default_store() == tmp_path / "dfcompile" / "exploration.sqlite"

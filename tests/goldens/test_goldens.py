"""Canonical DAGs and schedules of small models are those that somebody has read."""

from dfcompile.canonical_dag import parse_dag
from tests.goldens.files import FOLDER, texts

AGAIN = "read the difference; if it is right: .venv/bin/python -m tests.goldens"


def test_dags_and_schedules_are_those_written_down() -> None:
    expected = texts()
    written = {path.name: path.read_text() for path in (*FOLDER.glob("*.dag"), *FOLDER.glob("*.schedule.txt"))}

    assert sorted(written) == sorted(expected)
    for name, text in expected.items():
        assert text == written[name], f"{name}: {AGAIN}"


def test_dags_that_are_written_down_are_read_back() -> None:
    for name, text in texts().items():
        if name.endswith(".dag"):
            assert parse_dag((FOLDER / name).read_text()) == parse_dag(text)

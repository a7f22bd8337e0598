"""Results and answers that are kept: what no run can have kept is said and forgotten."""

from pathlib import Path

import msgspec
import pytest

from dfcompile.errors import UserError
from dfcompile.exploration.explored import ResultStore, default_store
from dfcompile.exploration.job import Outcome
from dfcompile.host.kept_lines import KeptLines
from dfcompile.records import replace

KEY = f"{64 * 'a'}/256"
OUTCOME = Outcome(256, 12, True, 34, 56, 78, ("a", "b"), 9, 2)
TEXT = msgspec.json.encode(OUTCOME).decode()


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    said: list[str] = []
    store = ResultStore(tmp_path / "new" / "c", said.append)
    store.put(KEY, OUTCOME)
    store.close()
    again = ResultStore(tmp_path / "new" / "c", said.append)

    assert again.get(KEY) == OUTCOME
    assert again.get("12ab/512") is None
    assert said == []


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("12", "12.5"),
        TEXT.replace("12", "-12"),
        TEXT.replace("12", "9" * 30),
        TEXT.replace("12", "true"),
        TEXT.replace("256", "512"),  # of another address
        TEXT.replace("78", "300"),  # more than there is room for
        TEXT.replace("34", "57"),  # more than passes through memory
        TEXT.replace('"tasks":9,', ""),
        TEXT.replace("{", '{"file":"/dev/zero",'),
        TEXT.replace('"a"', "NaN"),
        "[]",
        "[" * 10**5,
        "",
    ],
)
def test_an_entry_that_cannot_be_is_said_and_computed_anew(tmp_path: Path, text: str) -> None:
    said: list[str] = []
    lines = KeptLines(tmp_path / "c", said.append)
    lines.put(f"result/{KEY}", text.encode())
    lines.close()
    store = ResultStore(tmp_path / "c", said.append)

    assert store.get(KEY) is None
    assert [line.split(": ")[1] for line in said] == ["entry result/aaaaaaaaaaaaa…aaaa/256 is not what it should be"]
    store.put(KEY, OUTCOME)
    store.close()
    assert ResultStore(tmp_path / "c", said.append).get(KEY) == OUTCOME
    assert len(said) == 1


def test_two_runs_share_a_file(tmp_path: Path) -> None:
    one, other = (ResultStore(tmp_path / "c", print) for _ in range(2))
    for number in range(20):
        (one if number % 2 else other).put(f"{number}/256", replace(OUTCOME, tasks=number))

    for number in range(20):
        assert one.get(f"{number}/256") == other.get(f"{number}/256") == replace(OUTCOME, tasks=number)


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UserError, match=r"^cache '.*/file/c': file exists \(--cache FILE names another\)"):
        ResultStore(tmp_path / "file" / "c", print)


def test_default_is_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert default_store() == tmp_path / "dfcompile" / "exploration.cache"

"""Texts kept in a file: damage is said once and mended, runs share it, and nothing else is touched."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.host import kept_lines
from dfcompile.host.inputs import note_read_files
from dfcompile.host.kept_lines import KeptLines
from tests.examples import examples

TEXTS = {"a": b"[1, 2]", "b": b'"two words"', "c": b"", "d": b"3" * 100}


def kept(path: Path) -> bytes:
    lines = KeptLines(path, print)
    for name, text in TEXTS.items():
        lines.put(name, text)
    lines.close()
    return path.read_bytes()


def found(path: Path, said: list[str]) -> dict[str, bytes]:
    note_read_files()  # a run begins: what the test has read is not its input
    lines = KeptLines(path, said.append)
    texts = {name: text for name in TEXTS if (text := lines.get(name)) is not None}
    lines.close()
    return texts


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    said: list[str] = []
    kept(tmp_path / "new" / "c")

    assert found(tmp_path / "new" / "c", said) == TEXTS
    assert said == []


@given(st.integers(0, 10**6), st.sampled_from([b"", b"\n", b"\xff", b" ", b"x" * 70]), st.integers(0, 3))
@examples(100)
def test_no_byte_can_be_another_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, piece: bytes, gone: int
) -> None:
    path = tmp_path_factory.mktemp("kept") / "c"
    content = kept(path)
    place %= len(content)
    changed = content[:place] + piece + content[place + gone :]
    path.write_bytes(changed)
    said: list[str] = []
    texts = found(path, said)

    assert all(TEXTS[name] == text for name, text in texts.items())
    assert len(texts) >= len(TEXTS) - 2
    assert len(said) == (changed != content)
    said.clear()
    assert found(path, said) == texts
    assert said == []


def test_runs_share_a_file_while_one_takes_damage_out(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "c"
    one, other = (KeptLines(path, said.append) for _ in range(2))
    one.put("a", b"1")
    assert other.get("a") == b"1"
    with path.open("ab") as file:
        file.write(b"half a line of a run that was kill")
    other.put("b", b"2")
    one.put("c", b"3")

    assert [one.get(name) for name in "abc"] == [other.get(name) for name in "abc"] == [b"1", b"2", b"3"]
    assert len(said) == 1
    assert "1 entry is damaged: computed anew" in said[0]
    assert found(path, said).keys() == {"a", "b", "c"}


def test_a_file_of_something_else_is_moved_and_none_is_lost(tmp_path: Path) -> None:
    said: list[str] = []
    for text in ("one", "two"):
        (tmp_path / "c").write_text(text)
        found(tmp_path / "c", said)

    assert (tmp_path / "c.damaged").read_text() == "one"
    assert (tmp_path / "c.damaged-2").read_text() == "two"
    assert [line.split(": ")[1:] for line in said] == [
        ["is no cache, or a damaged one", f"kept as 'c.damaged{number}', begun anew"] for number in ("", "-2")
    ]


def test_a_link_is_followed_but_a_file_of_something_else_is_not_moved(tmp_path: Path) -> None:
    said: list[str] = []
    kept(tmp_path / "elsewhere")
    (tmp_path / "c").symlink_to("elsewhere")
    with (tmp_path / "elsewhere").open("ab") as file:
        file.write(b"damage\n")
    assert found(tmp_path / "c", said) == TEXTS
    assert (tmp_path / "c").is_symlink()

    (tmp_path / "elsewhere").write_text("somebody's")
    assert found(tmp_path / "c", said) == {}
    assert (tmp_path / "elsewhere").read_text() == "somebody's"
    assert len(said) == 2


@pytest.mark.parametrize("target", ["/dev/zero", "nowhere", "c", "."])
def test_what_is_no_file_stays_as_it_is(tmp_path: Path, target: str) -> None:
    said: list[str] = []
    (tmp_path / "c").symlink_to(target)
    lines = KeptLines(tmp_path / "c", said.append)
    lines.put("a", b"1")

    assert lines.get("a") == b"1"
    assert lines.get("b") is None
    assert len(said) == 1
    assert "found no regular file: it stays as it is, and nothing is kept" in said[0]
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_file_that_is_too_large_is_begun_anew(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "c").touch()
    os.truncate(tmp_path / "c", kept_lines.LARGEST_BYTES + 1)

    assert found(tmp_path / "c", said) == {}
    assert "has more than 268435456 bytes: kept as 'c.damaged', begun anew" in said[0]


def test_an_input_is_no_cache(tmp_path: Path) -> None:
    note_read_files()
    (tmp_path / "empty.py").touch()
    (tmp_path / "empty.py").read_text()

    with pytest.raises(UserError, match=r"empty.py': found a file that this run reads against another file"):
        KeptLines(tmp_path / "empty.py", print)


def test_a_lock_that_is_not_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(kept_lines, "_PATIENCE_S", 0.02)
    with (tmp_path / "c").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        with pytest.raises(UserError, match=r"^cache '.*/c': resource temporarily unavailable \(--cache FILE"):
            KeptLines(tmp_path / "c", print)


def test_the_mode_of_the_file_stays(tmp_path: Path) -> None:
    kept(tmp_path / "c")
    (tmp_path / "c").chmod(0o640)
    with (tmp_path / "c").open("ab") as file:
        file.write(b"damage\n")
    found(tmp_path / "c", [])

    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o640

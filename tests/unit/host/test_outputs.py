"""Outputs appear whole or not at all."""

import os
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.host.outputs import check_folder, check_target, write_folder, write_text


def names(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_text_replaces_the_file_and_leaves_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    write_text("new\n", target)

    assert (target.read_text(), names(tmp_path)) == ("new\n", ["out.json"])


def test_text_without_a_file_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_text("text\n", None)

    assert capsys.readouterr().out == "text\n"


def test_text_goes_through_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "out.json"
    target.write_text("old")
    link.symlink_to(target)

    write_text("new", link)

    assert (link.is_symlink(), target.read_text()) == (True, "new")


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write_text("text", pipe)

    assert (os.read(reader, 100), pipe.is_fifo()) == (b"text", True)
    os.close(reader)


def test_failed_text_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    with pytest.raises(UnicodeEncodeError):
        write_text("\ud800", target)  # a lone surrogate has no UTF-8

    assert (target.read_text(), names(tmp_path)) == ("old", ["out.json"])


def test_target_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"output '.*': no folder '.*missing'"):
        check_target(tmp_path / "missing" / "out.json")


def test_target_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found a folder against a file name"):
        check_target(tmp_path)


def test_folder_is_written_with_sub_folders_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder({"a.txt": "1", "b/c.txt": "2"}, folder)
    write_folder({"d.txt": "3"}, folder)

    assert names(tmp_path) == ["out/.dfcompile-emit", "out/d.txt"]


def test_foreign_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")

    with pytest.raises(UserError, match="found other files in it against a new or empty folder"):
        write_folder({"a.txt": "1"}, tmp_path)

    assert names(tmp_path) == ["mine.txt"]


def test_empty_folder_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write_folder({"a.txt": "1"}, folder)

    assert names(folder) == [".dfcompile-emit", "a.txt"]


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("")

    with pytest.raises(UserError, match="found a file against a folder name"):
        check_folder(file)

"""Folders in which others can change nothing, and nothing of which is left."""

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.host.private_folder import private_folder, require_private


@pytest.fixture(autouse=True)
def _temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_folder_is_ours_alone_new_and_removed(tmp_path: Path) -> None:
    with private_folder() as first, private_folder() as second:
        (first / "deep" / "er").mkdir(parents=True)
        assert first != second
        assert stat.S_IMODE(first.stat().st_mode) == 0o700

    assert list(tmp_path.iterdir()) == []


def test_folder_is_removed_when_the_body_is_left_by_an_exit(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), private_folder() as folder:
        sys.exit((folder / "file").write_text("x"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o701])
def test_folder_that_others_can_change_is_refused(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(UserError, match="found one that others can change against a private one"):
        require_private(folder)


def test_folder_of_another_owner_and_a_link_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, link = tmp_path / "mine", tmp_path / "link"
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    with pytest.raises(UserError, match="against a private one"):
        require_private(link)

    require_private(folder)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UserError, match="against a private one"):
        require_private(folder)


def test_folder_where_others_may_exchange_ours_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)  # writable by all and without the sticky bit
    with pytest.raises(UserError, match="others can exchange folders"), private_folder():
        pass
    assert list(tmp_path.iterdir()) == []

    tmp_path.chmod(0o1777)  # as /tmp
    with private_folder():
        pass


def test_missing_temporary_folder_is_the_users_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    with (
        pytest.raises(UserError, match=r"temporary folder: no such file or directory \(set TMPDIR\)"),
        private_folder(),
    ):
        pass

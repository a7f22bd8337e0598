"""Progress is shown to somebody who watches a long command, and to nobody else."""

import io
import re
import sys
import time
from pathlib import Path

import pytest

from dfcompile.cli import progress
from dfcompile.errors import UserError
from dfcompile.host.stages import work_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    tries = 0

    def write(self, _text: str) -> int:
        self.tries += 1
        raise OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def nothing_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.PROGRESS, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def show(monkeypatch: pytest.MonkeyPatch, stderr: io.TextIOBase, *, patience_s: float, stage_s: float) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    with progress.showing_progress():
        with progress.show_stage("reading"):
            pass
        with progress.show_stage("lowering"), work_of(4) as work:
            work.add()
            time.sleep(stage_s)
        with progress.show_stage("mapping"):
            pass


def on_terminal(monkeypatch: pytest.MonkeyPatch, **times: float) -> str:
    stderr = Terminal()
    show(monkeypatch, stderr, **times)
    return stderr.getvalue()


def in_file(monkeypatch: pytest.MonkeyPatch, log: Path, **times: float) -> list[str]:
    with log.open("w", encoding="utf-8") as stderr:
        show(monkeypatch, stderr, **times)
    return log.read_text(encoding="utf-8").splitlines()


def test_a_terminal_has_stage_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = on_terminal(monkeypatch, patience_s=0.1, stage_s=0.6)

    assert re.search(r"  25 %  \d:\d\d left  lowering …", drawn)
    assert "reading" not in drawn


def test_a_short_command_shows_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert on_terminal(monkeypatch, patience_s=30.0, stage_s=0.0) == ""
    assert in_file(monkeypatch, tmp_path / "log", patience_s=30.0, stage_s=0.0) == []


def test_a_log_file_has_a_line_of_what_takes_long_and_of_what_follows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = in_file(monkeypatch, tmp_path / "log", patience_s=0.1, stage_s=0.4)

    assert [line.split()[-1] for line in lines] == ["lowering", "mapping"]  # reading took no time
    assert all(line.startswith("dfcompile: ") and " s  " in line for line in lines)


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    show(monkeypatch, stderr, patience_s=0.0, stage_s=0.3)

    assert stderr.getvalue() == ""


def test_the_environment_asks_for_lines_or_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(progress.PROGRESS, "none")
    assert in_file(monkeypatch, tmp_path / "log", patience_s=0.0, stage_s=0.3) == []
    monkeypatch.setenv(progress.PROGRESS, "log")
    stderr = io.StringIO()
    show(monkeypatch, stderr, patience_s=0.0, stage_s=0.3)
    assert len(stderr.getvalue().splitlines()) == 3
    monkeypatch.setenv(progress.PROGRESS, "lots")
    with pytest.raises(UserError, match="DFCOMPILE_PROGRESS: found 'lots' against terminal, log, none"):
        show(monkeypatch, stderr, patience_s=0.0, stage_s=0.0)


def test_a_full_log_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.PROGRESS, "log")
    full = Full()
    show(monkeypatch, full, patience_s=0.0, stage_s=0.1)

    assert full.tries


def test_error_of_a_stage_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ValueError, match="stage"), progress.showing_progress(), progress.show_stage("lowering"):
        raise ValueError("stage")

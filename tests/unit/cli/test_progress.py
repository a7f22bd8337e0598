"""Progress is shown to somebody who watches a long stage, and to nobody else."""

import io
import sys
import time

import pytest

from dfcompile.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, *, patience_s: float, stage_s: float) -> str:
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    with progress.show_stage("lowering"):
        time.sleep(stage_s)
    return stderr.getvalue()


def test_long_stage_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lowering …" in show(monkeypatch, Terminal(), patience_s=0.0, stage_s=0.3)


def test_short_stage_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lowering" not in show(monkeypatch, Terminal(), patience_s=5.0, stage_s=0.0)


def test_nothing_is_shown_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert show(monkeypatch, io.StringIO(), patience_s=0.0, stage_s=0.3) == ""


def test_error_of_a_stage_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ValueError, match="stage"), progress.show_stage("lowering"):
        raise ValueError("stage")

"""What packages offer is read once, and again when one is installed."""

from pathlib import Path

import pytest

from dfcompile.plugins.kind import modules_behind
from tests.unit.plugins.installed import write_package

GROUPS = ("dfcompile.partitioners", "dfcompile.expansions")


def test_entry_points_are_read_once_for_all_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    modules_behind(GROUPS)

    def read() -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("importlib.metadata.entry_points", read)
    assert modules_behind(GROUPS)[1] == ()


def test_a_package_that_comes_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert modules_behind(GROUPS)[0] == ()
    write_package(tmp_path, "latecomer", {}, GROUPS[:1])

    assert [module.__name__ for module in modules_behind(GROUPS)[0]] == ["latecomer"]

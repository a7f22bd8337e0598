"""What is found of a kind, and what happens to modules that cannot be imported."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dfcompile.errors import RegistrationError, UserError
from dfcompile.plugins import PluginKind
from dfcompile.scheduler.partitioner import PARTITIONERS, Partitioner
from tests.unit.plugins.installed import write_package

GROUP = "dfcompile.partitioners"
IMPORTS = "from dfcompile.scheduler import partitioner\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import sys

    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - known:
        if not name.startswith("dfcompile"):
            del sys.modules[name]


def made(name: str) -> str:
    return f"partitioner({name!r}, source='lab')(lambda dag, pes: None)"


@pytest.mark.parametrize(
    "held",
    ["{0}", "({0},)", "[{0}]", "{{'a': {0}}}", "frozenset([{0}])"],
    ids=["alone", "tuple", "list", "dict", "set"],
)
def test_values_are_found_alone_and_in_collections(packages: Path, held: str) -> None:
    write_package(packages, "kindlab", {"parts.py": f"{IMPORTS}HELD = {held.format(made('mine'))}"}, [GROUP])
    found = PARTITIONERS.collect()

    assert [plugin.origin for plugin in found.plugins if plugin.value.name == "mine"] == ["kindlab.parts"]
    assert found.faults == ()


def test_a_value_that_another_module_imports_is_found_once(packages: Path) -> None:
    modules = {"a.py": f"{IMPORTS}MINE = {made('mine')}", "b.py": "from kindlab.a import MINE\nALL = [MINE]"}
    write_package(packages, "kindlab", modules, [GROUP])

    assert [plugin.origin for plugin in PARTITIONERS.collect().plugins if plugin.value.name == "mine"] == ["kindlab.a"]


def test_the_older_group_is_looked_at_as_well(packages: Path) -> None:
    write_package(packages, "kindlab", {"parts.py": f"{IMPORTS}MINE = {made('mine')}"}, ["dfcompile.schedulers"])

    assert "mine" in PARTITIONERS.collect().by_name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_fault_and_the_others_are_there(
    packages: Path, text: str, reason: str
) -> None:
    modules = {"broken.py": text, "parts.py": f"{IMPORTS}MINE = {made('mine')}"}
    write_package(packages, "kindlab", modules, [GROUP])
    found = PARTITIONERS.collect()
    (line,) = found.warnings

    assert line.startswith(f"entry point {GROUP}:kindlab: cannot import 'kindlab.broken': {reason}")
    assert "\n" not in line
    assert {"mine", "sb-rlx"} <= set(found.by_name)


def test_an_entry_point_to_nowhere_and_one_to_a_value_are_faults(packages: Path) -> None:
    write_package(packages, "kindlab", {}, [])
    points = f"[{GROUP}]\ngone = kindlab_that_is_not_there\nvalue = kindlab:parts\n"
    (packages / "kindlab-1.0.dist-info" / "entry_points.txt").write_text(points)
    gone, value = PARTITIONERS.collect().warnings

    assert "entry point dfcompile.partitioners:gone: cannot import 'kindlab_that_is_not_there': ModuleNotFound" in gone
    assert value.endswith(
        "cannot import 'kindlab:parts': ImportError: an object against a module, in which values are found"
    )


def test_a_program_in_a_package_is_not_run(packages: Path) -> None:
    write_package(packages, "kindlab", {"__main__.py": "raise SystemExit('run')"}, [GROUP])

    assert PARTITIONERS.collect().faults == ()


def test_who_asks_for_something_that_is_not_there_is_told_what_might_have_offered_it(packages: Path) -> None:
    with pytest.raises(UserError, match=r"^--partition 'sb-rlz': unknown \(did you mean 'sb-rlx'\?\)$"):
        PARTITIONERS.collect().find("sb-rlz", "--partition")
    write_package(packages, "kindlab", {"broken.py": "import nowhere"}, [GROUP])
    with pytest.raises(UserError, match=r"'mine': unknown; entry point .*kindlab: cannot import 'kindlab.broken': Mod"):
        PARTITIONERS.collect().find("mine", "--partition")


def test_two_claims_of_one_name_name_both_and_the_listing_shows_them(packages: Path) -> None:
    write_package(packages, "kindlab", {"a.py": f"{IMPORTS}MINE = {made('sb-lts')}"}, [GROUP])
    with pytest.raises(RegistrationError, match=r"'dfcompile\.scheduler\.partitioners\.spatial' and by 'kindlab\.a'"):
        PARTITIONERS.collect()

    assert "kindlab.a" in PARTITIONERS.listed().clash


def test_a_module_of_ours_that_cannot_be_imported_is_a_bug(packages: Path) -> None:
    write_package(packages, "kindlab", {"broken.py": "import nowhere"}, [])
    kind = PluginKind("part", Partitioner, "kindlab", "dfcompile.parts", key=str)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        kind.collect()

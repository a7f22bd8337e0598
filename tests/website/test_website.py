"""The site: every page can be reached, formulas are set, nothing is fetched, the example of the reference runs."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from dfcompile.cli.listings import KINDS
from tests.website.formulas import mathml, on_page_content

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


def linked(entries: object) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(entries, dict):
        return [page for entry in entries.values() for page in linked(entry)]
    if isinstance(entries, list):
        return [page for entry in entries for page in linked(entry)]
    return [str(entries)]


def test_every_page_stands_in_the_navigation_once() -> None:
    assert sorted(linked(YAML(typ="safe").load(ROOT / "mkdocs.yml")["nav"])) == PAGES


def test_every_kind_of_plugin_stands_in_the_overview() -> None:
    text = (ROOT / "docs" / "plugins" / "index.md").read_text()

    assert set(re.findall(r"^\| .* \| `(dfcompile\.\w+)` \|", text, re.MULTILINE)) == {
        listed().groups[0] for listed in KINDS
    }


def test_every_package_that_has_a_front_door_is_in_the_reference() -> None:
    hands_on = re.compile(r"__all__|\b(\w+) as \1\b")
    doors = [door for door in (ROOT / "dfcompile").glob("*/__init__.py") if hands_on.search(door.read_text())]
    shown = {
        found
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for found in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
    }

    assert shown == {"dfcompile", "dfcompile.errors", *(f"dfcompile.{door.parent.name}" for door in doors)}


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(folder / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [*words, "--site-dir", str(site)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_link_to_nowhere_and_a_page_out_of_the_navigation_end_the_build(tmp_path: Path) -> None:
    configuration = YAML(typ="safe").load(ROOT / "mkdocs.yml")
    strict = {key: configuration[key] for key in ("site_name", "strict", "validation")}
    YAML().dump({**strict, "nav": [{"Overview": "index.md"}]}, tmp_path / "mkdocs.yml")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[here](#title)\n")
    good = build(tmp_path, tmp_path / "site")
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[there](#nowhere), [page](missing.md)\n")
    (tmp_path / "docs" / "forgotten.md").write_text("# Forgotten\n")
    bad = build(tmp_path, tmp_path / "site")

    assert good.returncode == 0, good.stderr
    assert bad.returncode == 1
    assert all(name in bad.stderr for name in ("#nowhere", "missing.md", "forgotten.md"))


def test_formulas_become_mathml() -> None:
    page = r'<p>rate <span class="arithmatex">\(O &lt; I\)</span></p><div class="arithmatex">\[R = \frac{O}{I}\]</div>'
    found = on_page_content(page)

    assert found.count("<math") == 2
    assert "arithmatex" not in found
    assert "<mi>O</mi><mo>&#x0003C;</mo><mi>I</mi>" in found
    assert '<div class="formula"><math' in found
    assert "<mfrac>" in found


def test_a_command_that_is_unknown_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"formula '.*rate.*': a command that is unknown"):
        mathml(r"\rate = 1", inline=True)


def test_the_example_of_the_reference_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).with_name("stages.py")))

    assert capsys.readouterr().out == "11 cycles, no schedule takes fewer than 11\n"

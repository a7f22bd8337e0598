"""Pictures that README and docs show are those that the scripts draw."""

import re
import shutil
from pathlib import Path

import pytest

from dfcompile.rtl.simulation import installed_simulators
from tests.locations import ROOT
from tests.website.browser import NAMES, browser
from tests.website.page_pictures import (
    FOLDER,
    LARGEST_BYTES,
    LARGEST_SUM_BYTES,
    LLAMA,
    PICTURES,
    draw,
    page_of,
)
from tests.website.waves import PICTURE as WAVES
from tests.website.waves import picture as waves

SHOWN = re.compile(r"!\[[^\]]+\]\(([^)]*screenshots/[^)]+)\)")


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_script_draws_all_pictures_that_documents_show_and_no_others() -> None:
    shown = {(page.parent / name).resolve() for page in documents() for name in SHOWN.findall(page.read_text())}
    drawn = {WAVES, *(FOLDER / f"{picture.name}.webp" for picture in PICTURES)}

    assert shown == drawn == set(FOLDER.iterdir())


@pytest.mark.skipif("icarus" not in installed_simulators(), reason="Icarus is not installed")
def test_waves_are_those_of_the_circuit(capsys: pytest.CaptureFixture[str]) -> None:
    assert waves() == WAVES.read_text()
    assert "layer_4: 6 cycles by icarus, as printed; 3 outputs bit for bit" in capsys.readouterr().out


def test_readme_shows_a_page() -> None:
    assert SHOWN.findall((ROOT / "README.md").read_text())


@pytest.mark.parametrize("name", [picture.name for picture in PICTURES])
def test_a_picture_is_small(name: str) -> None:
    content = (FOLDER / f"{name}.webp").read_bytes()

    assert (content[:4], content[8:15]) == (b"RIFF", b"WEBPVP8")
    assert len(content) <= LARGEST_BYTES


def test_pictures_are_small_together() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= LARGEST_SUM_BYTES


def test_make_draws_them() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nscreenshots:")[2].partition("\n\n")[0]

    assert "-m tests.website.page_pictures" in recipe


@pytest.mark.skipif(
    not any(map(shutil.which, NAMES)), reason=f"none of {', '.join(NAMES)} is on PATH: pages are drawn in a browser"
)
def test_the_same_page_gives_the_same_bytes() -> None:
    (picture,) = [one for one in PICTURES if one.commands == LLAMA]
    drawn = []
    for _ in range(2):
        with browser() as window, page_of(LLAMA) as page:
            drawn.append(draw(window, page, picture))

    assert drawn[0] == drawn[1]
    assert len(drawn[0]) <= LARGEST_BYTES

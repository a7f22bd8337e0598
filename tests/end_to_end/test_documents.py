"""What documents show is what happens."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dfcompile.cli import main as cli
from tests.documents import (
    CANONICAL_OPERATORS,
    FIELDS,
    FIELDS_DOCUMENT,
    OPTION_DOCUMENTS,
    PICTURE,
    RECORDS,
    ROOT,
    SESSION,
    SHOWN,
    documents,
    examples_exported_once,
    fields_now,
    options_now,
    session_now,
    taken_now,
    with_canonical_operators,
)

DOCUMENTS = documents()
STALE = "run `python -m tests.documents` and look at the difference"


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_shows_what_its_commands_print_and_draw(document: Path) -> None:
    taken = taken_now(document)

    assert taken.text == document.read_text(), STALE
    for picture, drawing in taken.pictures.items():
        assert picture.read_text() == drawing, STALE


def test_documents_that_show_commands_are_found() -> None:
    assert {str(path.relative_to(ROOT)) for path in DOCUMENTS} >= {
        "README.md",
        "docs/extraction.md",
        "docs/index.md",
        "docs/tutorial.md",
        "examples/lenet/README.md",
    }


def test_every_picture_is_drawn_by_a_command_of_the_page_that_shows_it() -> None:
    drawn = {
        (page.parent / found["path"]).resolve() for page in DOCUMENTS for found in PICTURE.finditer(page.read_text())
    }

    assert drawn == set((ROOT / "docs" / "pictures").iterdir())


FIGURE = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?![\d,])|(?<![\d.,])\d+\.\d+(?![\d.])")


@pytest.mark.parametrize("page", ["index", "tutorial"])
def test_figures_in_the_text_stand_in_what_the_commands_of_the_page_print(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    shown = "".join(block["session"] for block in SHOWN.finditer(text))
    drawn = "".join((ROOT / "docs" / found["path"]).read_text() for found in PICTURE.finditer(text))
    claimed = set(FIGURE.findall(SHOWN.sub("", text)))

    assert claimed
    assert claimed <= set(FIGURE.findall(shown + drawn))


def test_what_is_not_so_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "![](pictures/chain.svg)\n\n```console\n$ dfcompile generate chain --size 2 -o dag.json\n"
        "$ dfcompile schedule dag.json --pes 2 --gantt chain.svg | tail -n 1\nnothing\n$ echo a  b\n```\n"
        "```python\n# examples/softmax.py\n```\n"
    )
    taken = taken_now(page)

    assert "\nnothing\n" not in taken.text
    assert "\n4 assumptions: -v lists them\n$ echo a  b\na b\n```\n" in taken.text
    assert f"# examples/softmax.py\n{(ROOT / 'examples' / 'softmax.py').read_text()}```" in taken.text
    assert taken.pictures[tmp_path / "pictures" / "chain.svg"].startswith("<svg")


@pytest.mark.slow
def test_code_of_documents_prints_what_they_show() -> None:
    text = SESSION.read_text()

    assert session_now(text) == text, "run `python -m tests.documents` and look at the difference"


def test_document_has_the_fields_of_every_record() -> None:
    text = FIELDS_DOCUMENT.read_text()

    assert fields_now(text) == text, "run `python -m tests.documents` and look at the difference"
    assert {block["record"] for block in FIELDS.finditer(text)} == set(RECORDS)


def test_canonical_operators_are_documented_as_their_classes_are() -> None:
    text = CANONICAL_OPERATORS.read_text()

    assert with_canonical_operators(text) == text, "run `python -m tests.documents` and look at the difference"


# A fenced block of commands to paste in a shell; `make` before them has made the environment.
PASTED = re.compile(
    r"^```\n(?:make .*\n)*(?:\.venv/bin/)?(?P<commands>dfcompile (?:generate|examples/)(?:.*\n)*?)```$", re.MULTILINE
)
BLOCKS = {
    block["commands"]: f"{path.stem}-{number}"  # one that stands on two pages is run once
    for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
    for number, block in enumerate(PASTED.finditer(path.read_text()))
}


@pytest.mark.slow
@pytest.mark.parametrize("commands", BLOCKS, ids=BLOCKS.values())
def test_commands_of_documents_run_as_they_are_pasted(
    commands: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    lines = commands.splitlines()
    if all(line.startswith("dfcompile ") for line in lines):
        monkeypatch.chdir(tmp_path)
        with examples_exported_once():
            status = max(cli.main(shlex.split(line)[1:]) for line in lines)
        printed = capsys.readouterr().err
    else:
        done = pasted(commands, tmp_path)
        status, printed = done.returncode, done.stderr

    assert (status, printed) == (0, "")


def pasted(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as a shell does."""
    program = folder / "bin" / "dfcompile"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m dfcompile "$@"\n')
    program.chmod(0o755)
    return subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
    )


def test_documents_have_commands_to_paste() -> None:
    assert {name.rpartition("-")[0] for name in BLOCKS.values()} >= {"README", "command-line", "dfmodel", "tutorial"}


def test_every_included_file_is_there_and_named_as_the_site_reads_it() -> None:
    pages = {page: page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    included = {page: re.findall(r'^--8<-- "(.+)"$', text, re.MULTILINE) for page, text in pages.items()}

    assert sum(map(len, included.values())) > 20
    assert [
        (page.name, name) for page, names in included.items() for name in names if not (ROOT / name).is_file()
    ] == []
    assert [page.name for page, text in pages.items() if len(re.findall("8 *< *--", text)) != len(included[page])] == []


@pytest.mark.parametrize("page", OPTION_DOCUMENTS, ids=lambda page: page.stem)
def test_tables_of_options_are_those_of_the_commands(page: Path) -> None:
    text = page.read_text()

    assert "<!-- options of " in text
    assert options_now(text) == text, STALE

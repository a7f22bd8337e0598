"""What documents show is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import CANONICAL_OPERATORS, DOCUMENTS, ROOT, shown_now, with_canonical_operators


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_shows_what_its_commands_print(document: Path) -> None:
    text = document.read_text()

    assert "$ dfcompile " in text
    assert shown_now(text) == text, "run `python -m tests.documents` and look at the difference"


def test_canonical_operators_are_documented_as_their_classes_are() -> None:
    text = CANONICAL_OPERATORS.read_text()

    assert with_canonical_operators(text) == text, "run `python -m tests.documents` and look at the difference"


# A fenced block of commands to paste in a shell.
PASTED = re.compile(r"^```\n(?P<commands>dfcompile generate (?:.*\n)*?)```$", re.MULTILINE)
BLOCKS = [
    pytest.param(block["commands"], id=f"{path.stem}-{number}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, block in enumerate(PASTED.finditer(path.read_text()))
]


@pytest.mark.slow
@pytest.mark.parametrize("commands", BLOCKS)
def test_commands_of_documents_run_as_they_are_pasted(commands: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "dfcompile"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m dfcompile "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_documents_have_commands_to_paste() -> None:
    assert {str(block.id).rpartition("-")[0] for block in BLOCKS} >= {"README", "command-line", "dfmodel"}

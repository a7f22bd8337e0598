"""Libraries in pages: the files are those that their versions published, with their licences."""

import hashlib
import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from dfcompile.page.document import SCRIPTS

VENDOR = Path(str(files("dfcompile.page"))) / "vendor"
LIBRARIES: dict[str, dict[str, str]] = json.loads((VENDOR / "libraries.json").read_text())


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_a_vendored_file_is_what_its_version_published(name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == LIBRARIES[name]["sha256"]


def test_every_vendored_file_has_a_licence_and_a_line() -> None:
    scripts = {file.name for file in VENDOR.glob("*.js")}

    assert scripts == set(LIBRARIES)
    assert {LIBRARIES[name]["licence_file"] for name in scripts} == {file.name for file in VENDOR.glob("*.LICENSE")}


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH: it tells whether scripts can be read")
def test_every_script_of_the_page_can_be_read() -> None:
    folder = VENDOR.parent / "scripts"
    for script in SCRIPTS:
        done = subprocess.run(["node", "--check", str(folder / script)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script
    assert {file.name for file in folder.glob("*.js")} == set(SCRIPTS)

"""Notebooks of the examples show what their cells give now, and are small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebooks import ROOT, notebooks, run_now

MOST_BYTES = 300_000
IN_JUPYTER = """
import builtins, sys, types
shown = []
class ZMQInteractiveShell: pass
builtins.get_ipython = ZMQInteractiveShell
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython.display"] = types.SimpleNamespace(HTML=len, display=shown.append)
import dfcompile
import dace
print(shown, builtins.get_ipython is ZMQInteractiveShell, hasattr(dace, "SDFG"))
"""  # what DaCe looks at


def test_there_are_notebooks() -> None:
    folders = [path.parent.relative_to(ROOT / "examples") for path in notebooks()]

    assert folders == [Path("lenet"), Path("llama")]


@pytest.mark.parametrize("notebook", notebooks(), ids=[path.stem for path in notebooks()])
def test_a_notebook_shows_what_its_cells_give(notebook: Path) -> None:
    """Else ``python -m tests.notebooks`` writes it anew."""
    assert run_now(notebook) == notebook.read_text()


@pytest.mark.parametrize("notebook", notebooks(), ids=[path.stem for path in notebooks()])
def test_a_notebook_is_small_and_has_no_scripts(notebook: Path) -> None:
    text = notebook.read_text()
    content = json.loads(text)

    assert len(text.encode()) <= MOST_BYTES
    assert "<script" not in text
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in content["cells"]]
    assert len(identities) == len(set(identities))
    _imports, *shown = (cell for cell in content["cells"] if cell["cell_type"] == "code")
    assert all(cell["outputs"] for cell in shown)


def test_dace_puts_no_viewer_into_a_notebook() -> None:
    run = subprocess.run([sys.executable, "-c", IN_JUPYTER], capture_output=True, text=True, check=True)

    assert run.stdout == "[] True True\n"

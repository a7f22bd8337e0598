"""Files with a ``@dace.program``, written as text."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pytest

ProgramWriter: TypeAlias = Callable[[str], Path]

HEAD = 'import dace\nimport numpy as np\n\nN, M = (dace.symbol(name) for name in "NM")\n\n'


@pytest.fixture
def write_program(tmp_path: Path) -> ProgramWriter:
    """Return what writes a file: imports, symbols N and M, then the text."""

    def write(text: str) -> Path:
        path = tmp_path / "given.py"
        path.write_text(HEAD + dedent(text))
        return path

    return write

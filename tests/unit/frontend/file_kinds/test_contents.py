"""Files of one suffix that hold different things."""

from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import FileKind, Model, ReadOptions, read_model
from dfcompile.frontend.dace_program.concrete import defines_program

PROGRAM = "import dace\n\n@dace.program\ndef f(A: dace.float64[4], B: dace.float64[4]):\n    B[:] = A\n"


def nothing(path: Path, options: ReadOptions) -> Model:
    raise AssertionError(path, options)


@pytest.mark.parametrize(
    ("text", "is_program"),
    [
        (PROGRAM, True),
        (PROGRAM.replace("@dace.program", "@dace.program(auto_optimize=False)"), True),
        (PROGRAM.replace("import dace", "from dace import program").replace("@dace.", "@"), True),
        (PROGRAM.replace("import dace", "import other as dace"), False),
        (PROGRAM.replace("@dace.program\n", ""), False),
        ("import torch\n\ndef model():\n    return torch.nn.ReLU()\n", False),
        ("def f(:\n", False),
    ],
)
def test_a_program_is_told_by_its_decorator(text: str, is_program: bool, tmp_path: Path) -> None:
    path = tmp_path / "given.py"
    path.write_text(text)

    assert defines_program(path) is is_program


def test_a_file_is_read_by_the_kind_that_claims_it(tmp_path: Path) -> None:
    program, model = tmp_path / "program.py", tmp_path / "model.py"
    program.write_text(PROGRAM)
    model.write_text("x = 1\n")

    assert [port.name for port in read_model(program).program.outputs] == ["B"]
    with pytest.raises(UserError, match="no 'model' is defined"):
        read_model(model)


def test_content_and_who_tells_it_come_together() -> None:
    with pytest.raises(ValueError, match="one of content and claims against both"):
        FileKind(".py", nothing, content="something")

"""Reports of programs with complex numbers say what these cost."""

import json

import pytest

import dfcompile as df
from dfcompile.cli.main import main
from tests.written_programs import ProgramWriter, write_program

__all__ = ["write_program"]

TEXT = """
@dace.program
def given(A: dace.TYPE[N], B: dace.TYPE[N]):
    B[:] = A * A
"""
SAID = "complex128 is one element of 16 bytes; an operation on it takes a cycle, as a real one does, not 2 to 8"


@pytest.mark.parametrize(("dtype", "expected"), [("complex128", [SAID]), ("float64", [])])
def test_cost_is_said_where_there_are_complex_numbers(
    dtype: str, expected: list[str], write_program: ProgramWriter, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_program(TEXT.replace("TYPE", dtype))

    run = df.compile(path, pes=2, dims={"N": 4})
    explored = [str(path), "--dim", "N=4", "--pes", "2", "--on-chip-memory", "8"]
    assert main(["explore", *explored, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)

    said = [found for found in run.report.assumptions if found.name == "complex numbers"]
    assert [found.value for found in said] == expected
    assert [text for text in record["assumptions"] if "complex" in text] == [
        f"complex numbers: {text} [own]" for text in expected
    ]
    assert main([str(path), "--dim", "N=4", "--pes", "2", "-v"]) == 0
    assert ("complex numbers:" in capsys.readouterr().out) is bool(expected)

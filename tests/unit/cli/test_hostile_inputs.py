"""Files that libraries choke on end in one line and status 1, whatever reads them."""

from pathlib import Path

import pytest

from dfcompile.cli.main import main

READERS = {
    ".json": ("compare {} {}", "llm --config {} --system h100-sxm", "schedule {} --pes 2",
              "llm --config llama-3.1-8b --system {} --prefill 8"),
    ".csv": ("llm --config llama-3.1-8b --system {} --prefill 8",),
    ".toml": ("llm --config llama-3.1-8b --system {} --prefill 8",),
    ".xlsx": ("llm --config llama-3.1-8b --system {} --prefill 8",),
    ".yaml": ("llm --config llama-3.1-8b --system {} --prefill 8",),
    ".txt": ("{}",),
}  # fmt: skip
PIECES = (
    b"%YAML 1.9\n---\n",
    b"a: !!python/object:os.system x\n",
    b"<<: [*a]\n",
    b"&a [*a]\n",
    b"? {a: b}\n",
    b"a: 1e999\n",
    b"a: .nan\n",
    b'"' + b"x" * 140_000 + b'"\n',
    b"a = " + b"9" * 5000 + b"\n",
    b'name,x\n"',
    b"name,d\ncores,1e999\n",
    b"\0",
    b"\x1b[2J",
    b"{" * 1000,
    b'{"format": "dfcompile-report/4", "a": NaN}',
    b'{"format": 1e999}',
    b"[1" + b"0" * 5000 + b"]",
    b"PK\x03\x04",
    b"2001-99-99: 1\n",
    b"!!timestamp x: 1\n",
    b"!!binary %%\n",
    b"!!int z\n",
    b"!!float z\n",
    b"a: !!omap 3\n",
    b"a: !!set [1]\n",
    b"1_0:90: 3\n",
    b"\xff\xfe",
)


def ends_in_a_line(command: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(command.format(file, file).split())

    error = capsys.readouterr().err.splitlines()
    assert status == 1, (command, error)
    assert sum(line.startswith("dfcompile: error:") for line in error) == 1, error
    assert all(line.isprintable() for line in error), error


@pytest.mark.parametrize(("suffix", "command"), [(key, each) for key, value in READERS.items() for each in value])
def test_pieces_that_libraries_choke_on(
    suffix: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, piece in enumerate(PIECES):
        file = tmp_path / f"{number}{suffix}"
        file.write_bytes(piece)
        ends_in_a_line(command, file, capsys)

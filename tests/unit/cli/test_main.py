"""Every end of the command line: exit status and one clear line."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dfcompile
from dfcompile.cli import main as cli

CaptureFixture = pytest.CaptureFixture[str]


def test_help_shows_the_options_and_the_other_commands(capsys: CaptureFixture) -> None:
    status = cli.main(["--help"])

    text = capsys.readouterr().out
    assert status == 0
    for expected in ("--pes", "--expand", "--emit KIND DIR", "expansions", "systems", "schedule"):
        assert expected in text


@pytest.mark.parametrize("words", [[], ["help"], ["--help"]], ids=" ".join)
def test_the_help_has_all_commands_and_first_what_is_used_most(words: list[str], capsys: CaptureFixture) -> None:
    assert cli.main(words) == 0

    lines = capsys.readouterr().out.splitlines()
    for name in cli.COMMANDS:
        assert any(line.startswith(f"    {name} ") for line in lines), name
    first = [line.split()[0] for line in lines if line.startswith("  --")][:5]
    assert first == ["--pes", "--expand", "--system", "--chips", "--show"]
    assert ("Schedules:" in lines) is (words == ["--help"])
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_of_a_command_is_its_own(name: str, capsys: CaptureFixture) -> None:
    texts = []
    for words in (["help", name], [name, "--help"]):
        assert cli.main(words) == 0
        texts.append(capsys.readouterr().out)

    assert texts[0] == texts[1]


def test_version(capsys: CaptureFixture) -> None:
    assert (cli.main(["--version"]), capsys.readouterr().out) == (0, f"dfcompile {dfcompile.__version__}\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--pes", "4"], "missing argument 'MODEL'"),
        (["help", "llms"], "no such command (did you mean 'llm'?)"),
        (["m.onnx"], "missing option '--pes'"),
        (["m.onnx", "--pes", "0"], "--pes: found '0' against a positive integer"),
        (["m.onnx", "--pes", "-4"], "--pes: found '-4' against a positive integer"),
        (["m.onnx", "--pes", "x"], "--pes: found 'x' against a positive integer"),
        (["m.onnx", "--pes", ""], "--pes: found '' against a positive integer"),
        (["m.onnx", "--pes", "4,4"], "--pes: 4 is given twice"),
        (["m.onnx", "--pes", "4", "--pse"], "no such option '--pse'"),
        (["m.onnx", "--pes", "4", "--volumes", "all"], "'all' is not one of 'exact', 'array'"),
        (["m.onnx", "--pes", "4", "--emit", "maps"], "option '--emit' requires 2 arguments"),
        (["m.onnx", "--pes", "4", "-o", "missing/out"], "missing/out': no folder"),
        (["schedule", "--pes", "4"], "missing argument 'DAG'"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_status_1(
    words: list[str], expected: str, capsys: CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status = cli.main(words)

    printed = capsys.readouterr()
    assert (status, printed.out, len(printed.err.splitlines())) == (1, "", 1)
    assert printed.err.startswith("dfcompile: error: ")
    assert expected in printed.err
    assert list(tmp_path.iterdir()) == []


def raising(error: BaseException) -> Callable[[list[str]], None]:
    def fail(_: list[str]) -> None:
        raise error

    return fail


def test_bug_is_one_line_with_the_traceback_in_a_file(capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_run", raising(KeyError("lost\nnode")))
    status = cli.main([])

    line = capsys.readouterr().err
    assert (status, line.count("\n")) == (2, 1)
    assert line.startswith("dfcompile: internal error: KeyError: ")
    saved = Path(line.rpartition("report it with ")[2].rstrip(")\n"))
    assert "Traceback (most recent call last)" in saved.read_text()
    saved.unlink()


def test_interrupt_is_silent_and_status_130(capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_run", raising(KeyboardInterrupt()))

    assert (cli.main([]), capsys.readouterr().err) == (130, "")


def test_closed_pipe_is_silent() -> None:
    code = "import sys; from dfcompile.cli.main import main; sys.exit(main(['--help']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()

        assert (done.stderr.read(), done.wait()) == (b"", 1)


def test_model_named_like_a_command_is_reached_by_its_path(capsys: CaptureFixture) -> None:
    status = cli.main(["./passes", "--pes", "4"])

    assert (status, capsys.readouterr().err) == (
        1,
        "dfcompile: error: passes: no suffix against a model file (.onnx, .pt2, .py)\n",
    )

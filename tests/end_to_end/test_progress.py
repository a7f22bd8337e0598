"""What a command shows of its progress: on a terminal, in a log file, in a pipe, and when it is interrupted."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dfcompile.cli import progress
from dfcompile.cli.main import main
from tests.locations import ROOT
from tests.onnx_files import save_convolution

COLUMNS = 100
# The command line, that starts to show something at once.
IMPATIENT = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from dfcompile.cli import progress; progress.PATIENCE_S = 0.0; "
    "from dfcompile.cli.main import main; sys.exit(main())"
)
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); "  # so that Ctrl-C is for it
CLOCK = re.compile(r"\d:\d\d (left|so far)")


@pytest.fixture(scope="module")
def dag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thousands of tasks: seconds of work."""
    file = tmp_path_factory.mktemp("dag") / "dag.json"
    assert main(["generate", "cholesky", "--size", "16", "-o", str(file)]) == 0
    return file


@pytest.fixture(scope="module")
def small_dag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dag") / "small.json"
    assert main(["generate", "cholesky", "--size", "4", "-o", str(file)]) == 0
    return file


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_convolution(tmp_path_factory.mktemp("model") / "convolution.onnx", shape=(1, 1, 12, 12))


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", IMPATIENT, *map(str, words)]


def environment(**more: str) -> dict[str, str]:
    left_out = ("COLUMNS", "DFCOMPILE_PROGRESS", "NO_COLOR", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **more}


def on_terminal(words: tuple[str | Path, ...], folder: Path, interrupt_at: str = "") -> tuple[int, str]:
    """Run a command with a terminal as standard error; return its exit status, and all that the terminal got.

    Args:
        words: of the command.
        folder: to run in.
        interrupt_at: what is typed Ctrl-C at.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))

    got, deadline = b"", time.monotonic() + 120
    with subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL + IMPATIENT, *map(str, words)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(),
        start_new_session=True,
    ) as run:
        os.close(theirs)
        is_typed = not interrupt_at
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                got += piece
            if not is_typed and interrupt_at.encode() in got:
                os.write(ours, b"\x03")
                is_typed = True
        os.close(ours)
    return run.returncode, got.decode()


def left_on_screen(text: str) -> tuple[list[str], int]:
    """Return the lines that a terminal shows in the end, and the column of its cursor."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?0-9;]*[a-zA-Z]|[^\x1b]", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.startswith("\x1b"):
            number = int(part[2:-1]) if part[2:-1].isdigit() else 1
            if part.endswith("K"):
                lines[row] = ""
            elif part.endswith("A"):
                row -= number
        else:
            lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + 1 :]
            column += 1
    return lines, column


def test_a_terminal_shows_stage_share_and_time_left_and_is_clean_afterwards(dag: Path, tmp_path: Path) -> None:
    status, got = on_terminal(("schedule", dag, "--pes", "16,32,64"), tmp_path)

    assert status == 0
    assert "scheduling on 16 processing elements with best …" in got
    shares = [int(share) for share in re.findall(r"(\d+) %", got)]
    assert shares == sorted(shares)
    assert any(30 <= share < 100 for share in shares)
    assert set(CLOCK.findall(got)) == {"left", "so far"}
    assert all(len(line) <= COLUMNS for line in re.split(r"[\r\n]|\x1b\[2K", got))
    assert left_on_screen(got) == ([""] * len(left_on_screen(got)[0]), 0)


def test_an_interrupt_leaves_a_clean_line_and_no_file(dag: Path, tmp_path: Path) -> None:
    words = ("schedule", dag, "--pes", "16,32,64", "--html", "page.html", "-o", "out.txt")
    status, got = on_terminal(words, tmp_path, interrupt_at="scheduling on 32")

    assert status == 130
    lines, column = left_on_screen(got)
    assert [line for line in lines if line.strip("^C ")] == []
    assert column == 0
    assert "\x1b[?25h" in got.rpartition("\x1b[?25l")[2]  # the cursor is seen again
    assert list(tmp_path.iterdir()) == []


def test_a_log_file_has_a_line_per_stage(small_dag: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as opened:
        subprocess.run(
            command("schedule", small_dag, "--pes", "16,64"),
            stdout=subprocess.DEVNULL, stderr=opened, check=True, env=environment(),
        )  # fmt: skip
    lines = log.read_text(encoding="utf-8").splitlines()

    assert [re.sub(r"^dfcompile: +[0-9.]+ s  ", "", line) for line in lines] == [
        f"reading {small_dag}",
        "scheduling on 16 processing elements with best",
        "scheduling on 64 processing elements with best",
    ]


def test_a_pipe_gets_nothing(small_dag: Path) -> None:
    done = subprocess.run(
        command("schedule", small_dag, "--pes", "16,64"), capture_output=True, text=True, check=True, env=environment()
    )

    assert done.stderr == ""


@pytest.mark.usefixtures("impatient")
def test_results_are_the_same_whoever_watches(
    small_dag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    found, seen = {}, {}
    for shown in ("terminal", "log", "none"):
        monkeypatch.setenv("DFCOMPILE_PROGRESS", shown)
        assert main(["schedule", str(small_dag), "--pes", "16", "--format", "json", "-o", str(out)]) == 0
        found[shown], seen[shown] = out.read_bytes(), capsys.readouterr().err

    assert found["terminal"] == found["log"] == found["none"]
    assert seen["log"]
    assert not seen["none"]


def test_the_environment_is_checked(
    small_dag: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DFCOMPILE_PROGRESS", "all")

    assert main(["schedule", str(small_dag), "--pes", "16"]) == 1
    assert capsys.readouterr().err == (
        "dfcompile: error: DFCOMPILE_PROGRESS: found 'all' against terminal, log, none\n"
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show something at once in this process, too."""
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)


@pytest.fixture
def logged(
    impatient: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Run a command in a folder of its own; return the stages in its log."""
    monkeypatch.setenv("DFCOMPILE_PROGRESS", "log")
    monkeypatch.chdir(tmp_path)

    def stages(*words: str | Path) -> list[str]:
        assert main([str(word) for word in words]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert all(re.match(r"dfcompile: +[0-9.]+ s  \w+", line) for line in lines)
        return [re.sub(r"^dfcompile: +[0-9.]+ s  ", "", line) for line in lines]

    return stages


@pytest.mark.parametrize(
    "words",
    [
        ("MODEL", "--pes", "16", "--expand", "published"),
        ("explore", "MODEL", "--pes", "4,16", "--on-chip-memory", "256", "--tries", "8", "--cache", "c"),
        ("bounds", "MODEL"),
        ("llm", "--config", "llama-3.1-8b", "--system", "h100-sxm", "--chips", "8", "--decode", "64x8"),
        (str(ROOT / "tests/data/dfmodel/fft_a100_1024.txt"),),
        ("generate", "cholesky", "--size", "4"),
    ],
)
def test_every_command_has_stages(words: tuple[str, ...], model: Path, logged: Callable[..., list[str]]) -> None:
    assert logged(*(model if word == "MODEL" else word for word in words))


def test_verification_is_said_step_by_step(model: Path, logged: Callable[..., list[str]]) -> None:
    stages = logged(model, "--pes", "16", "--verify")

    verifying = stages.index("verifying the lowered model")
    assert stages[verifying + 1 : verifying + 5] == [
        "running the original",
        "compiling the lowered model",
        "running the lowered model",
        "running the original on other values",
    ]


def test_a_terminal_shows_a_share_while_a_model_is_verified(model: Path, tmp_path: Path) -> None:
    status, got = on_terminal((model, "--pes", "16", "--verify"), tmp_path)

    assert status == 0
    compiling = re.findall(r"(\d+) %[^%]*?compiling the lowered model", got)
    assert len(set(compiling)) >= 3  # it comes on, though nothing is heard of the compiler
    assert "left" in got[got.index("compiling the lowered model") - COLUMNS :]


def test_comparing_and_mapped_layers_have_stages(logged: Callable[..., list[str]]) -> None:
    words = ("llm", "--config", "gpt2", "--system", "h100-sxm", "--decode", "64x2", "--format", "json")
    stages = logged(*words, "--map", "-o", "a.json", "--html", "a.html")

    assert stages == ["studying gpt2", "mapping layers", "making the page"]
    assert logged("compare", "a.json", "a.html") == ["reading reports", "comparing"]

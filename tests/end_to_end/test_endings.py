"""However a run ends, it says why in one line, leaves nothing behind and exits as documented."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dfcompile.cli import main as cli
from dfcompile.cli.endings import SignalledError, ending_signals, exit_status
from dfcompile.cli.progress import show_stage
from dfcompile.errors import PluginError, UnsupportedOpError, UserError, together
from tests.onnx_files import save_convolution

ROOT = Path(__file__).parent.parent.parent
MAIN = "import sys; from dfcompile.cli.main import main; sys.exit(main())"
Capture = pytest.CaptureFixture[str]

QUICKLY = ["--expand", "published", "--partition", "sb-lts"]
COMMANDS = (["conv.onnx", "--pes", "2", *QUICKLY], ["systems"], ["--help"], ["generate", "chain", "--size", "8"])


def shell(redirection: str, words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with redirected streams; what of stdout and stderr is left is captured."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", MAIN, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_full_or_closed_standard_output_is_one_line_and_status_1(words: list[str], tmp_path: Path) -> None:
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 6, 6))
    full, closed = shell(">/dev/full", words, tmp_path), shell(">&-", words, tmp_path)

    assert (full.returncode, full.stderr.count("\n")) == (1, 1), full.stderr
    assert full.stderr.endswith("output: no space left on device\n")
    assert (closed.returncode, closed.stderr.count("\n")) == (1, 1), closed.stderr
    assert "standard output: closed against open" in closed.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&-"])
def test_closed_or_full_other_streams_change_nothing_else(redirection: str, tmp_path: Path) -> None:
    assert cli.main(["generate", "chain", "--size", "8", "-o", str(tmp_path / "dag.json")]) == 0
    good, bad = (shell(redirection, ["schedule", name, "--pes", "2"], tmp_path) for name in ("dag.json", "none.json"))

    assert good.returncode == 0
    assert good.stdout.startswith("schedule\n")
    assert (bad.returncode, bad.stdout) == (1, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_during_verification_leaves_nothing_and_no_compiler(number: signal.Signals, tmp_path: Path) -> None:
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 6, 6))
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o700)
    heard = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)"  # whoever runs the tests may ignore it
    with subprocess.Popen(
        [sys.executable, "-c", f"{heard}; {MAIN}", "conv.onnx", "--pes", "2", *QUICKLY, "--verify", "-o", "out.json"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    ) as run:
        deadline = time.monotonic() + 60
        while not list(temporary.glob("dfcompile-*/build/*")):  # the compiler's folder
            assert run.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        run.send_signal(number)
        assert run.stderr is not None
        message = run.stderr.read()
        status = run.wait()

    assert (status, message) == (128 + number, "")
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conv.onnx", "tmp"]
    used = [path for path in Path("/proc").glob("[0-9]*/cwd") if os.access(path, os.R_OK)]
    assert [path for path in used if str(temporary) in str(path.resolve())] == []


def hang_up_and_end() -> None:
    with ending_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)


def test_signal_is_raised_once_and_an_ignored_one_stays_ignored() -> None:
    others = (signal.SIGTERM, signal.SIGINT)  # the latter is ignored as well in a shell's background
    as_they_were = [signal.getsignal(number) for number in others]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(SignalledError, match="15"):
            hang_up_and_end()
        assert [signal.getsignal(number) for number in others] == as_they_were
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("Unable to allocate 9 GiB"), "memory: more is needed than there is: Unable to allocate 9 GiB"),
        (MemoryError(), "memory: more is needed than there is ("),
        (RecursionError("maximum recursion depth exceeded"), "input: nested too deeply"),
        (OSError(28, "No space left on device", "/tmp/x"), "/tmp/x: no space left on device"),
        (OSError(24, "Too many open files"), "output: too many open files"),
        (PermissionError(13, "Permission denied", "x"), "x: permission denied"),
    ],
)
def test_what_the_machine_lacks_is_the_users_to_mend(
    error: Exception, expected: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str]) -> None:
        raise error

    monkeypatch.setattr(cli, "_run", fail)

    assert cli.main([]) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"dfcompile: error: {expected}")
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("std::bad_alloc"), r"lowering: needs more memory than there is \(std::bad_alloc\)"),
        (RecursionError("maximum"), "lowering: nested too deeply"),
    ],
)
def test_stage_that_needs_too_much_is_named(error: Exception, expected: str) -> None:
    with pytest.raises(UserError, match=expected), show_stage("lowering"):
        raise error


def test_bug_is_told_also_where_no_report_can_be_written(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: list[str]) -> None:
        raise KeyError("lost " * 1000)

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")

    assert cli.main([]) == 2
    line = capsys.readouterr().err
    assert "which cannot be kept: no such file or directory" in line
    assert (line.count("\n"), len(line) < 600) == (1, True)


def test_missing_torch_is_one_line_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n")
    code = (
        "import sys, importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a); "
        "sys.modules['torch'] = None; from dfcompile.cli.main import main; sys.exit(main(['model.py', '--pes', '2']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    line = done.stderr.removeprefix("dfcompile: error: model.py: ")
    assert line == "a PyTorch model needs torch, which is not installed (pip install torch onnxscript)\n"


@pytest.mark.parametrize("limit_kb", [1, 12])
def test_full_temporary_folder_during_compilation_is_one_line(limit_kb: int, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full folder: to a program both are a write that fails."""
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 6, 6))
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from dfcompile.cli import main as cli; "
        "from dfcompile.lowering.execution import compiled_run as execution; build = execution._compiled\n"
        "def limited(sdfg):\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kb * 1024}, {limit_kb * 1024}))\n"
        "    return build(sdfg)\n"
        "execution._compiled = limited\n"
        f"sys.exit(cli.main(['conv.onnx', '--pes', '2', *{QUICKLY}, '--verify']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("dfcompile: error: compiling the lowered model: ")
    assert "ile too large" in done.stderr
    assert len(done.stderr) < 500


def test_text_stream_without_a_file_behind_it_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    assert cli.main(["systems"]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Net.onnx: node 'a': " + "[" * 20_000,
        "node '" + "a" * 5_000 + "': found 3 against 4 (another one)",
        "\x1b" * 5_000 + ": no such file",
        "'" * 1_000,
        "word " * 1_000,
    ],
)
@pytest.mark.parametrize("kind", [UserError, PluginError, KeyError])
def test_a_message_is_a_line_of_300_characters_unless_all_is_asked_for(
    text: str, kind: type[Exception], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str]) -> None:
        raise kind(text)

    monkeypatch.setattr(cli, "_run", fail)
    cli.main([])
    line = capsys.readouterr().err
    monkeypatch.setenv("DFCOMPILE_TRACEBACK", "1")
    cli.main([])

    assert line.count("\n") == 1
    assert len(line) <= 301
    assert "…" in line
    assert len(capsys.readouterr().err) > len(line)


def test_of_a_message_that_is_too_long_names_are_cut_first(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: list[str]) -> None:
        raise UserError(f"node '{'n' * 400}': found 3 against 4 (another one)")

    monkeypatch.setattr(cli, "_run", fail)
    cli.main([])

    assert capsys.readouterr().err.endswith("nnn…': found 3 against 4 (another one)\n")


def test_names_keep_their_case(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Setup.txt").write_text("Graph { }")

    assert cli.main(["Net.onnx", "--pes", "2"]) == 1
    assert capsys.readouterr().err == "dfcompile: error: Net.onnx: no such file\n"
    assert cli.main(["Setup.txt"]) == 1
    assert capsys.readouterr().err.startswith("dfcompile: error: Setup.txt:1: unknown field 'Graph' of DSE")


def test_a_path_that_is_too_long_is_the_users_to_mend(capsys: Capture) -> None:
    for words in (["x.onnx"], ["y.txt"], ["schedule", "z.dag"]):
        *command, name = words
        assert cli.main([*command, name * 5_000, *["--pes", "2"][: 2 * ("txt" not in name)]]) == 1
        assert capsys.readouterr().err.lower().endswith("…: file name too long\n") or "y.txt" in name


def test_every_operator_that_is_refused_is_named_however_many_there_are(capsys: Capture) -> None:
    errors = [UnsupportedOpError(f"node {name!r}: no expansion for 'Bernoulli' {'because ' * 20}") for name in "abcd"]

    def fail() -> None:
        raise together(errors)

    assert exit_status(fail) == 1
    line = capsys.readouterr().err

    assert line.startswith("dfcompile: error: 4 operators have no expansion: node 'a': ")
    assert all(f"node {name!r}: " in line for name in "abcd")

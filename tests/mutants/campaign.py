"""Runs the concerned unit tests on one mutant after another, in a copy of the package."""

import compileall
import importlib
import os
import py_compile
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.mutants.catalogue import concerned_tests
from tests.mutants.mutant import Mutant

COPIED = ("dfcompile", "tests", "examples", "pyproject.toml")
PRELOADED = ("numpy", "onnx.reference", "dace")  # once for all mutants, as they take seconds
KILLED, SURVIVED, TOO_LONG = "killed", "survived", "killed by the time limit"


@dataclass(frozen=True, slots=True)
class Result:
    """What the unit tests say of a mutant.

    Attributes:
        outcome: ``killed``, ``survived``, ``killed by the time limit``.
        test: the first test that failed, if any.
        seconds: wall time.
    """

    mutant: str
    outcome: str
    test: str
    seconds: float


@contextmanager
def copied_package(root: Path) -> Iterator[Path]:
    """Give a copy of all that tests need, compiled so that a changed module is always noticed.

    Args:
        root: of the project.
    """
    for module in PRELOADED:
        importlib.import_module(module)
    with TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        for part in COPIED:
            source, ignored = root / part, shutil.ignore_patterns("__pycache__", ".hypothesis")
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=ignored)
            else:
                shutil.copy(source, folder / part)
        by_content = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / "dfcompile", quiet=1, invalidation_mode=by_content)
        yield folder


def judged(mutant: Mutant, folder: Path, limit_s: float) -> Result:
    """Apply a mutant in a copy, run the concerned tests until one fails, and undo it.

    Args:
        mutant: the change.
        folder: the copy.
        limit_s: wall time after which a mutant counts as killed: it hangs.

    Raises:
        LookupError: the text that the mutant changes has gone.
    """
    module = folder / "dfcompile" / mutant.file
    before, begin = module.read_text(), time.monotonic()
    module.write_text(mutant.applied(folder / "dfcompile"))
    try:
        failed = first_failure(concerned_tests(mutant.file), folder, limit_s)
    finally:
        module.write_text(before)
    outcome = {None: TOO_LONG, "": SURVIVED}.get(failed, KILLED)
    return Result(mutant.name, outcome, failed or "", round(time.monotonic() - begin, 1))


def first_failure(tests: Sequence[str], folder: Path, limit_s: float) -> str | None:
    """Return the first test that fails in a copy; nothing if all pass, None if they take too long.

    Raises:
        RuntimeError: no test could be run.
    """
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(tests, folder, there))
    process.start()
    there.close()
    try:
        return str(here.recv()) if here.poll(limit_s) else None
    except EOFError:
        raise RuntimeError(f"{', '.join(tests)}: the process that ran them ended without an answer") from None
    finally:
        process.kill()
        process.join()


def _run(tests: Sequence[str], folder: Path, answer: Connection) -> None:
    """Run tests in a process of its own, part after part, as far as there are such."""
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "dfcompile")]:
        del sys.modules[name]
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    first, done = _First(), list[str]()
    for part in tests:
        if Path(part).exists():
            skipped = [f"--ignore={other}" for other in done]
            arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *skipped, part]
            pytest.main(arguments, plugins=[first])
            if first.failed:
                break
            done.append(part)
    answer.send(first.failed)


class _First:
    """A plug-in of pytest that knows the first failure."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_configure(self) -> None:
        """Let property tests stop at the first example that fails: which one is the simplest does not matter here."""
        from hypothesis import Phase, settings  # not before: pytest rewrites it

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases, database=None, deadline=None)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

"""The product's command line, run in this process: its status, and whether its one line is clean."""

import contextlib
import io
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dfcompile.cli import main as cli
from tests.fuzz.outcome import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it printed.

    Attributes:
        outcome: `ACCEPTED` or `REFUSED`, or a finding.
        out: on standard output.
        err: on standard error.
    """

    outcome: Outcome
    out: str
    err: str


def run_command(words: Sequence[str]) -> Outcome:
    """Return `ACCEPTED` or `REFUSED`, or a finding."""
    return ran(words).outcome


def ran(words: Sequence[str]) -> Ran:
    """Run a command; both streams are kept."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(words)
    return Ran(_outcome(status, err.getvalue()), out.getvalue(), err.getvalue())


def _outcome(status: int, printed: str) -> Outcome:
    if status not in (0, 1):
        report = printed.rpartition("please report it with ")[2].strip().rstrip(")")
        return bug_in_report(Path(report), printed)
    if status == 0:
        return Outcome(Verdict.ACCEPTED)
    if printed.count("\n") != 1 or not printed.removesuffix("\n").isprintable():
        return Outcome(Verdict.UNCLEAN, f"unclean: {printed[:60]!r}", repr(printed[:2000]))
    if "enough memory" in printed or "out of memory" in printed:
        return Outcome(Verdict.TOO_LARGE, f"memory: {without_names(printed)}", printed)
    return Outcome(Verdict.REFUSED, without_names(printed), printed)


def bug_in_report(report: Path, printed: str) -> Outcome:
    """Return the finding that a report of an internal error is; the report is removed."""
    if not report.is_file():
        return Outcome(Verdict.BUG, f"without report: {without_names(printed)}", printed)
    text = report.read_text()
    report.unlink()
    places = [line.split("/")[-1].replace('"', "") for line in text.splitlines() if line.startswith("  File ")]
    own = [line for line in places if "site-packages" not in line]
    return Outcome(Verdict.BUG, f"{text.splitlines()[-1].partition(':')[0]} at {(own or places)[-1]}", text)


def bug(error: BaseException) -> Outcome:
    """Return the finding that an exception is which the command line would not expect."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/dfcompile/" in frame.filename] or frames
    place = f"{own[-1].filename.rpartition('/dfcompile/')[2]}:{own[-1].lineno} in {own[-1].name}"
    verdict = Verdict.TOO_LARGE if isinstance(error, MemoryError) else Verdict.BUG
    return Outcome(verdict, f"{type(error).__name__} at {place}", "".join(traceback.format_exception(error))[-6000:])


def without_names(message: str) -> str:
    """Return a message without what differs from case to case: names, numbers, paths.

    >>> without_names("node 'n0': axis 7 against 2 dimensions of 'x'")
    "node '…': axis # against # dimensions of '…'"
    """
    quoted = message.strip().replace('"', "'").split("'")
    outside = ["".join("#" if char.isdigit() else char for char in part) for part in quoted[::2]]
    text = "'…'".join(" ".join(part.replace("##", "#").split(" ")) for part in outside)
    while "##" in text:
        text = text.replace("##", "#")
    return text[:160]

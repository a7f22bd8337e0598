"""A worker process: judges one case after another, as told on standard input; answers as JSON, one line each."""

import faulthandler
import json
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TextIO

from tests.fuzz.command_line import bug
from tests.fuzz.draw import Draw
from tests.fuzz.kinds import KINDS
from tests.fuzz.oracle import load
from tests.fuzz.outcome import Outcome, Verdict

MOST_BYTES = 2 * 2**30  # of memory above what the process has at the start


def main() -> None:
    """Serve until standard input ends. What libraries print to standard output does not come in between."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    load(b"")  # onnxruntime takes memory of its own
    _limit_memory()
    _answer(answers, {"ready": True})
    with tempfile.TemporaryDirectory(prefix="dfcompile-fuzz-") as folder:
        os.chdir(folder)
        for line in sys.stdin:
            kind, seed = json.loads(line)
            _answer(answers, _judged(answers, kind, seed))


def _judged(answers: TextIO, name: str, seed: str) -> dict[str, str]:
    draw, kind = Draw(seed), KINDS[name]
    case = kind.draw(draw)
    path = Path(f"case{case.suffix}")
    path.write_bytes(case.content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        outcome = kind.judge(path, case, draw, lambda phase: _answer(answers, {"phase": phase}))
    except Exception as error:  # noqa: BLE001  # a flaw of the judge is told as one of dfcompile is
        outcome = bug(error)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > MOST_BYTES * 0.9:
        outcome = Outcome(Verdict.TOO_LARGE, outcome.cause, f"{grown} bytes more; {outcome.detail}")
    return {"verdict": outcome.verdict.name, "cause": outcome.cause, "detail": outcome.detail}


def _answer(answers: TextIO, value: object) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()

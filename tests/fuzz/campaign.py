"""A campaign: worker processes judge cases; one that hangs or dies is replaced, and its case is a finding."""

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.fuzz.outcome import Outcome, Verdict

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 20.0  # of a case
START_SECONDS = 120.0
CASES_OF_A_PROCESS = 4000  # so that what libraries leak does not add up
COMPILER_PHASE = "compiler"
ORACLE_PHASE = "onnxruntime"


@dataclass(frozen=True, slots=True)
class Judged:
    """A case of a campaign and what came of it."""

    kind: str
    seed: str
    outcome: Outcome
    seconds: float


class Worker:
    """A process that judges cases."""

    def __init__(self, log: Path) -> None:
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            )  # fmt: skip
        self._pending = b""
        self.judged = 0
        if self._line(time.monotonic() + START_SECONDS) is None:
            raise RuntimeError(f"a worker does not start: see {log}")

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def judge(self, kind: str, seed: str) -> tuple[Outcome, bool]:
        """Return what came of a case, and whether the worker is still of use."""
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps([kind, seed]) + "\n").encode())
        self._process.stdin.flush()
        self.judged += 1
        phase, deadline = "drawing", time.monotonic() + START_SECONDS
        while line := self._line(deadline):
            answer = json.loads(line)
            if "verdict" in answer:
                outcome = Outcome(Verdict[answer["verdict"]], answer["cause"], answer["detail"])
                return outcome, self.judged < CASES_OF_A_PROCESS
            if answer["phase"] == COMPILER_PHASE:
                deadline = time.monotonic() + START_SECONDS
            elif phase == "drawing":  # which is no work of dfcompile's
                deadline = time.monotonic() + MOST_SECONDS
            phase = answer["phase"]
        if phase == ORACLE_PHASE:
            return Outcome(Verdict.NOT_COMPARED, "onnxruntime dies or hangs"), False
        if line is None:
            return Outcome(Verdict.TOO_SLOW, f"too slow: {phase}", f"more than {MOST_SECONDS} s"), False
        status = self._process.wait()
        return Outcome(Verdict.DIED, f"died: {phase}", f"exit status {status}"), False

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line, an empty one if the process has ended, ``None`` when the time is over."""
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            more = self._process.stdout.raw.read(65536)  # type: ignore[attr-defined]  # a buffered reader has it
            if not more:
                return b""
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        return line


def run_campaign(
    cases: Sequence[tuple[str, str]], workers: int, log: Path, show: Callable[[Judged], None]
) -> tuple[Judged, ...]:
    """Judge cases, given as kind and seed, and return what came of each; ``show`` is told at once."""
    shares = [cases[at::workers] for at in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda share: list(_served(share, log, show)), shares))
    return tuple(judged for share in found for judged in share)


def _served(cases: Sequence[tuple[str, str]], log: Path, show: Callable[[Judged], None]) -> Iterator[Judged]:
    rest = list(reversed(cases))
    while rest:
        with Worker(log) as worker:
            useful = True
            while rest and useful:
                kind, seed = rest.pop()
                begin = time.monotonic()
                outcome, useful = worker.judge(kind, seed)
                judged = Judged(kind, seed, outcome, time.monotonic() - begin)
                show(judged)
                yield judged

"""A campaign: worker processes judge cases; one that hangs or dies is replaced, and its case is a finding."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.fuzz.outcome import Outcome, Verdict

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 20.0  # of processor time, for a case
HANGING_SECONDS = 300.0  # on the clock
START_SECONDS = 300.0
POLL_SECONDS = 1.0
CASES_OF_A_PROCESS = 4000  # so that what libraries leak does not add up
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
        self.judged += 1
        try:
            self._process.stdin.write((json.dumps([kind, seed]) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return Outcome(Verdict.DIED, "died: after a case", "the case before this one"), False
        phase, begin_cpu, answer = self._followed()
        spent = self._cpu_seconds() - begin_cpu
        if phase == ORACLE_PHASE:
            return Outcome(Verdict.NOT_COMPARED, "onnxruntime dies or hangs"), False
        if answer is None or spent > MOST_SECONDS:
            return Outcome(Verdict.TOO_SLOW, f"too slow: {phase}", f"{spent:.0f} s of processor time"), False
        if not answer:
            return Outcome(Verdict.DIED, f"died: {phase}", f"exit status {self._process.wait()}"), False
        outcome = Outcome(Verdict[answer["verdict"]], answer["cause"], answer["detail"])
        return outcome, self.judged < CASES_OF_A_PROCESS

    def _followed(self) -> tuple[str, float, Mapping[str, str] | None]:
        """Return the last phase, the processor time at the begin of the first, and the answer.

        The answer is empty if the process has died, ``None`` if its time is over. Work is measured in processor time,
        as the machine may have others to serve; drawing a case is no work of dfcompile's.
        """
        phase, begin, begin_cpu = "drawing", time.monotonic(), self._cpu_seconds()
        while True:
            line = self._line(time.monotonic() + POLL_SECONDS)
            if line is None:
                beyond = self._cpu_seconds() - begin_cpu > MOST_SECONDS and phase != "drawing"
                if beyond or time.monotonic() - begin > HANGING_SECONDS:
                    return phase, begin_cpu, None
                continue
            answer = json.loads(line) if line else {}
            if "phase" not in answer:
                return ("" if answer else phase), begin_cpu, answer
            if phase == "drawing":
                begin_cpu = self._cpu_seconds()
            phase = answer["phase"]

    def _cpu_seconds(self) -> float:
        """Return the processor time of the process so far, without that of compilers that it started."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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

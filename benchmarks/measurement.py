"""Measures commands: CPU seconds and peak memory of a process and all that it starts."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("dace", "highspy", "networkx", "numpy", "onnx", "pulp", "torch")
RUNS = 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """Median of several runs of a command after a warm-up."""

    name: str
    command: str
    cpu_s: float  # user and system time
    cpu_s_limit: float
    cpu_s_runs: tuple[float, ...]
    peak_memory_mb: float

    @property
    def is_within_limit(self) -> bool:
        """Whether the median keeps the limit."""
        return self.cpu_s <= self.cpu_s_limit


def measure(name: str, command: Sequence[str], cpu_s_limit: float, count: int = RUNS) -> Measurement:
    """Run a command once to warm up, then measure it several times; without a warm-up if it is measured once.

    Raises:
        RuntimeError: the command fails.
    """
    if count > 1:
        _run(command)
    runs = [_run(command) for _ in range(count)]
    cpu_s = tuple(round(seconds, 3) for seconds, _ in runs)
    peak_mb = max(peak_kb for _, peak_kb in runs) / 1000
    shown = " ".join([Path(command[0]).name, *command[1:]])
    return Measurement(name, shown, statistics.median(cpu_s), cpu_s_limit, cpu_s, round(peak_mb, 1))


def save(name: str, measurements: Sequence[DataclassInstance], summary: Mapping[str, object] | None = None) -> Path:
    """Write measurements with machine and commit to ``benchmarks/results`` and return the file."""
    RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": head(),
        "changed_files": len(_git("status", "--porcelain").splitlines()),
        "machine": {
            "cpu": _cpu(),
            "cores": len(os.sched_getaffinity(0)),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "versions": {package: _version(package) for package in PACKAGES},
        **({} if summary is None else {"summary": dict(summary)}),
        "measurements": [asdict(found) for found in measurements],
    }
    target = RESULTS / f"{name}.json"
    target.write_text(json.dumps(record, indent=2) + "\n")
    return target


def head() -> str:
    """Return the commit that is measured."""
    return _git("rev-parse", "HEAD")


def _run(command: Sequence[str]) -> tuple[float, int]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"

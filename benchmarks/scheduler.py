"""CPU seconds and peak memory of each phase of scheduling against the size of the graph.

``python -m benchmarks.scheduler [--largest TASKS] [--seed SEED]``: FFT, Gaussian elimination and Cholesky of about
10,000, 100,000 and 1,000,000 tasks, as far as the limit goes, on 128 processing elements; elementwise tasks, or random
volumes. Every graph and each of schedule, baseline and simulation has a process of its own, so that the peak of one is
not that of another.
"""

import argparse
import json
import math
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.measurement import ROOT, save

PES = 128
SIZES = {
    "fft": (1024, 8192, 65_536),
    "gaussian": (141, 447, 1414),
    "cholesky": (38, 83, 181),
}
ABOUT_TASKS = (10_000, 100_000, 1_000_000)
PARTS = ("schedule", "baseline", "simulation")

CORE = "partition + times"  # partition, streamed edges, intervals and times
CORE_PHASES = ("partition", "streamed edges", "intervals and times")
CORE_LIMITS_S = {10_000: 0.4, 100_000: 4.0, 1_000_000: 60.0}
CORE_LIMIT_MB = 6000.0
BASELINE = "non-streaming (eft)"
BASELINE_LIMIT_S = 20.0  # at 100,000 tasks
PATIENCE_S = 900
LARGEST_EXPONENT = 1.15  # of CORE between 10,000 and 1,000,000 tasks


@dataclass(frozen=True, slots=True)
class PhaseMeasurement:
    """One phase on one graph."""

    generator: str
    about_tasks: int
    tasks: int
    edges: int
    phase: str
    cpu_s: float
    peak_memory_mb: float  # of the process up to the end of the phase
    cpu_s_limit: float | None = None

    @property
    def is_within_limit(self) -> bool:
        """Whether time and, for the core phases, memory keep their limits."""
        in_time = self.cpu_s_limit is None or self.cpu_s <= self.cpu_s_limit
        return in_time and (self.phase != CORE or self.peak_memory_mb <= CORE_LIMIT_MB)


def main(words: list[str]) -> int:
    """Measure, print, save; 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000, help="about so many tasks at most")
    parser.add_argument("--seed", type=int, help="of random volumes; without one all tasks are elementwise")
    options = parser.parse_args(words)
    found: list[PhaseMeasurement] = []
    for generator, sizes in SIZES.items():
        for size, about in zip(sizes, ABOUT_TASKS, strict=True):
            if about <= options.largest:
                for measured in measure_graph(generator, size, about, options.seed):
                    print(row(measured), flush=True)
                    found.append(measured)
    exponents = growth(found)
    for (generator, phase), exponent in exponents.items():
        print(f"{generator:<9} {phase:<20} grows as n^{exponent:.2f}")
    summary = {
        "pes": PES,
        "seed": options.seed,
        "growth": [[*key, round(value, 3)] for key, value in exponents.items()],
    }
    name = "scheduler" if options.seed is None else "scheduler_random"
    print(f"written to {save(name, found, summary).relative_to(ROOT)}")
    steep = [key for key, value in exponents.items() if key[1] == CORE and value > LARGEST_EXPONENT]
    is_full = options.largest >= ABOUT_TASKS[-1]  # start-up hides growth in smaller ones
    return 0 if all(measured.is_within_limit for measured in found) and not (is_full and steep) else 1


def measure_graph(generator: str, size: int, about: int, seed: int | None) -> list[PhaseMeasurement]:
    """Measure all phases on one graph; a part that does not come to an end is left out, and that is said."""
    measured = []
    arguments = [generator, str(size), str(-1 if seed is None else seed), str(PES)]
    for part in PARTS:
        command = [sys.executable, "-m", "benchmarks.scheduler_phases", *arguments, part]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            reason = (
                f"after {PATIENCE_S} s" if isinstance(error, subprocess.TimeoutExpired) else error.stderr[-200:].strip()
            )
            print(f"{generator:<9} {about:>9,} {part}: NOT FINISHED ({reason})", flush=True)
            continue
        record = json.loads(done.stdout)
        for phase in record["phases"]:
            if part == PARTS[0] or phase["phase"] != "generate":
                limit = BASELINE_LIMIT_S if (phase["phase"], about) == (BASELINE, 100_000) else None
                measured.append(
                    PhaseMeasurement(generator, about, record["tasks"], record["edges"], **phase, cpu_s_limit=limit)
                )
    parts = [found for found in measured if found.phase in CORE_PHASES]
    core = PhaseMeasurement(
        generator, about, measured[0].tasks, measured[0].edges, CORE, round(sum(found.cpu_s for found in parts), 4),
        max(found.peak_memory_mb for found in parts), CORE_LIMITS_S[about],
    )  # fmt: skip
    return [*measured, core]


def growth(found: list[PhaseMeasurement]) -> dict[tuple[str, str], float]:
    """Return the exponent of each phase's time between the smallest and the largest graph of each generator."""
    series: dict[tuple[str, str], list[PhaseMeasurement]] = {}
    for measured in found:
        series.setdefault((measured.generator, measured.phase), []).append(measured)
    return {
        key: math.log(points[-1].cpu_s / points[0].cpu_s) / math.log(points[-1].tasks / points[0].tasks)
        for key, points in series.items()
        if len(points) > 1 and points[0].cpu_s > 0
    }


def row(measured: PhaseMeasurement) -> str:
    """Return a line about one phase."""
    verdict = ""
    if measured.cpu_s_limit is not None:
        verdict = f" of {measured.cpu_s_limit:g}  {'ok' if measured.is_within_limit else 'OVER THE LIMIT'}"
    return (
        f"{measured.generator:<9} {measured.tasks:>9,} {measured.phase:<20} {measured.cpu_s:8.3f} CPU s "
        f"{measured.peak_memory_mb:7,.0f} MB{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

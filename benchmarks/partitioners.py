"""Speedups of all partitioners on random volumes, beside the baseline and what the lower bound allows.

``python -m benchmarks.partitioners [--seeds N] [--workers N]``: medians over N seeds as a Markdown table, and as JSON
in ``benchmarks/results``.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from benchmarks.measurement import ROOT, save
from dfcompile.canonical_dag import CanonicalDag, streaming_depth, total_work
from dfcompile.generators.canonical_dags import chain, cholesky, fft, gaussian
from dfcompile.scheduler import ScheduleOptions, Timing, check, lower_bound_cycles, schedule, schedule_non_streaming

VOLUME = 2048
GRAPHS: dict[str, tuple[Callable[..., CanonicalDag], int, tuple[int, ...]]] = {
    "chain": (chain, 8, (2, 4, 6, 8)),
    "fft": (fft, 32, (32, 64, 96, 128)),
    "gaussian": (gaussian, 16, (32, 64, 96, 128)),
    "cholesky": (cholesky, 8, (32, 64, 96, 128)),
}
# Column, partitioner, with barriers or as the partitioner has it.
WAYS = (
    ("SB-LTS", "sb-lts", True),
    ("SB-RLX", "sb-rlx", True),
    ("work-ordered", "work-ordered", True),
    ("best", "best", None),
)
COLUMNS = (*(column for column, _, _ in WAYS), "EFT", "lower bound")


@dataclass(frozen=True, slots=True)
class Point:
    """One graph on one number of processing elements."""

    generator: str
    size: int
    pes: int
    seed: int


@dataclass(frozen=True, slots=True)
class SpeedupMeasurement:
    """Medians over seeds; each tuple runs along ``COLUMNS``."""

    generator: str
    size: int
    pes: int
    seeds: int
    columns: tuple[str, ...]
    speedup: tuple[float, ...]
    sslr: tuple[float, ...]
    makespan_cycles: tuple[float, ...]
    best_over_published: float  # median makespan of best / the smaller median of SB-LTS and SB-RLX


def makespans(point: Point) -> tuple[list[int], int, int]:
    """Return the makespan of each column, the work and the streaming depth of one graph."""
    make, _, _ = GRAPHS[point.generator]
    dag = make(point.size, VOLUME, point.seed)
    cycles = []
    for _, partition, barrier in WAYS:
        found = schedule(dag, ScheduleOptions(point.pes, partition, barrier=barrier, timing=Timing.STEADY))
        check(dag, found)
        cycles.append(found.makespan_cycles)
    cycles.append(schedule_non_streaming(dag, point.pes).makespan_cycles)
    cycles.append(lower_bound_cycles(dag, point.pes))
    return cycles, total_work(dag), streaming_depth(dag)


def measure(pool: ProcessPoolExecutor, generator: str, pes: int, seeds: int) -> SpeedupMeasurement:
    """Take the medians over all seeds."""
    _, size, _ = GRAPHS[generator]
    points = [Point(generator, size, pes, seed) for seed in range(seeds)]
    runs = list(pool.map(makespans, points, chunksize=max(1, seeds // 32)))
    places = range(len(COLUMNS))
    median_cycles = [statistics.median(cycles[place] for cycles, _, _ in runs) for place in places]
    speedup = [statistics.median(work / cycles[place] for cycles, work, _ in runs) for place in places]
    sslr = [statistics.median(cycles[place] / depth for cycles, _, depth in runs) for place in places]
    return SpeedupMeasurement(
        generator, size, pes, seeds, COLUMNS,
        tuple(round(value, 2) for value in speedup),
        tuple(round(value, 2) for value in sslr),
        tuple(median_cycles),
        round(median_cycles[COLUMNS.index("best")] / min(median_cycles[:2]), 3),
    )  # fmt: skip


def heading() -> str:
    """Return the head of the Markdown table."""
    cells = ("graph", "PEs", *COLUMNS, "best / published")
    return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}"


def row(found: SpeedupMeasurement) -> str:
    """Return a line of the Markdown table: speedups with the utilisation of the processing elements."""
    figures = [f"{value:.2f} ({100 * value / found.pes:.0f}%)" for value in found.speedup]
    cells = (f"{found.generator} {found.size}", str(found.pes), *figures, f"{found.best_over_published:.3f}")
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="of random volumes")
    parser.add_argument("--workers", type=int, default=3, help="processes")
    options = parser.parse_args(words)
    found = []
    print(heading(), flush=True)
    with ProcessPoolExecutor(options.workers) as pool:
        for generator, (_, _, counts) in GRAPHS.items():
            for pes in counts:
                found.append(measure(pool, generator, pes, options.seeds))
                print(row(found[-1]), flush=True)
                target = save("partitioners", found, {"volume": VOLUME})  # it is a long run
    print(f"written to {target.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Speedups over random volumes, beside the bound: ``python -m benchmarks.speedups SEEDS [GRAPH…]``."""

import json
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from benchmarks.measurement import RESULTS
from dfcompile.canonical_dag import CanonicalDag, total_work
from dfcompile.canonical_dag.generators import chain, cholesky, fft, gaussian
from dfcompile.scheduler import ScheduleOptions, check, lower_bound_cycles, schedule

VOLUME = 2048
GRAPHS: dict[str, tuple[Callable[..., CanonicalDag], int, tuple[int, ...]]] = {
    "chain": (chain, 8, (2, 4, 6, 8)),
    "gaussian": (gaussian, 16, (32, 64, 96, 128)),
    "cholesky": (cholesky, 8, (32, 64, 96, 128)),
    "fft": (fft, 32, (32, 64, 96, 128)),
}
COLUMNS = ("sb-lts", "sb-rlx", "best with barriers", "best", "bound")
WORKERS = 3


def speedups(point: tuple[str, int, int]) -> tuple[float, ...]:
    """Return the speedup of each column for one generator, number of elements and seed."""
    name, pes, seed = point
    make, size, _ = GRAPHS[name]
    dag = make(size, VOLUME, seed)
    makespans = []
    for partition, barrier in (("sb-lts", True), ("sb-rlx", True), ("best", True), ("best", False)):
        found = schedule(dag, ScheduleOptions(pes, partition, barrier=barrier))
        check(dag, found)
        makespans.append(found.makespan_cycles)
    return tuple(total_work(dag) / cycles for cycles in [*makespans, lower_bound_cycles(dag, pes)])


def main(seeds: int, names: list[str]) -> None:
    """Write medians per graph and number of elements to ``benchmarks/results/speedups.json``; others stay there."""
    file = RESULTS / "speedups.json"
    rows = {
        (row["graph"], row["pes"]): row for row in (json.loads(file.read_text())["medians"] if file.exists() else [])
    }
    with ProcessPoolExecutor(WORKERS) as pool:
        for name in names:
            _, size, counts = GRAPHS[name]
            for pes in counts:
                found = list(pool.map(speedups, [(name, pes, seed) for seed in range(seeds)], chunksize=4))
                medians = {c: round(statistics.median(row[i] for row in found), 2) for i, c in enumerate(COLUMNS)}
                row = {"graph": f"{name} {size}", "pes": pes, "seeds": seeds, "speedup": medians}
                rows[row["graph"], pes] = row
                print(json.dumps(row), flush=True)
                record = {"benchmark": "speedups", "volume": VOLUME, "medians": list(rows.values())}
                file.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or list(GRAPHS))

"""How far partitioners are from the optimum on small graphs: ``python -m benchmarks.partition_quality``."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.measurement import save
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import chain, cholesky, fork_join, gaussian
from dfcompile.scheduler import ScheduleOptions, Timing, schedule

SEEDS = 12
VOLUME = 2048
PES = (2, 3, 4, 6)
GRAPHS: dict[str, Callable[..., CanonicalDag]] = {
    "chain 8": partial(chain, 8),
    "chain 12": partial(chain, 12),
    "gaussian 4": partial(gaussian, 4),
    "cholesky 3": partial(cholesky, 3),
    "fork-join 5 5": partial(fork_join, 5, 5),
}
CONTENDERS = (
    ("sb-lts", True),
    ("sb-rlx", True),
    ("work-ordered", True),
    ("best", True),
    ("best", False),
)


@dataclass(frozen=True, slots=True)
class Quality:
    """Makespans of one partitioner on one graph over those of ``exact`` with barriers."""

    graph: str
    schedules: int
    partitioner: str
    optimal: int  # schedules that are as short as the optimum
    median: float
    largest: float
    least: float


def main() -> None:
    """Write medians and maxima of makespan / optimum with barriers to ``benchmarks/results``."""
    rows: list[Quality] = []
    for name, make in GRAPHS.items():
        ratios: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            dag = make(VOLUME, seed)
            for pes in PES:
                optimum = schedule(dag, ScheduleOptions(pes, "exact", timing=Timing.STEADY)).makespan_cycles
                for partition, barrier in CONTENDERS:
                    found = schedule(
                        dag, ScheduleOptions(pes, partition, barrier=barrier, timing=Timing.STEADY)
                    ).makespan_cycles
                    ratios.setdefault(partition if barrier else f"{partition}, overlapping", []).append(found / optimum)
        measured = [
            Quality(
                name, len(values), label, sum(ratio == 1 for ratio in values),
                round(statistics.median(values), 4), round(max(values), 4), round(min(values), 4),
            )
            for label, values in ratios.items()
        ]  # fmt: skip
        print("\n".join(map(str, measured)), flush=True)
        rows.extend(measured)
    save("partition_quality", rows)


if __name__ == "__main__":
    main()

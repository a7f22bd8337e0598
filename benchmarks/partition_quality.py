"""How far partitioners are from the optimum on small graphs: ``python -m benchmarks.partition_quality``."""

import json
import statistics
from collections.abc import Callable
from functools import partial

from benchmarks.measurement import RESULTS
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.generators import chain, cholesky, fork_join, gaussian
from dfcompile.scheduler import ScheduleOptions, schedule

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


def main() -> None:
    """Write medians and maxima of makespan / optimum with barriers to ``benchmarks/results``."""
    rows = []
    for name, make in GRAPHS.items():
        ratios: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            dag = make(VOLUME, seed)
            for pes in PES:
                optimum = schedule(dag, ScheduleOptions(pes, "exact")).makespan_cycles
                for partition, barrier in CONTENDERS:
                    found = schedule(dag, ScheduleOptions(pes, partition, barrier=barrier)).makespan_cycles
                    ratios.setdefault(partition if barrier else f"{partition}, overlapping", []).append(found / optimum)
        rows.append(
            {
                "graph": name,
                "schedules": SEEDS * len(PES),
                "makespan_over_optimum": {
                    label: {
                        "optimal": sum(ratio == 1 for ratio in values),
                        "median": round(statistics.median(values), 4),
                        "max": round(max(values), 4),
                        "min": round(min(values), 4),
                    }
                    for label, values in ratios.items()
                },
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    (RESULTS / "partition_quality.json").write_text(
        json.dumps({"benchmark": "partition quality", "graphs": rows}) + "\n"
    )


if __name__ == "__main__":
    main()

"""How far the default schedules are above the bound, family by family.

``python -m benchmarks.schedule_gaps [--seeds N] [--effort quick|default|high] [--large] [--families NAME …]
[--most-tasks N]``: medians and worst cases over N seeds as a Markdown table, and how many were proved optimal. What
times are steady is said: those gaps are no proof. *Held* is the reason for most of what misses: the part of all element
cycles in which tasks keep their elements longer than their work takes, because what they read comes slowly.
Where a row misses the goal (median 5 %, worst 15 %) its worst graph is tried with ``--effort high``, and the last
column says how much of that gap is the schedule's, how much the bound's, and how much neither can tell.
``--families`` takes some of the families, ``--most-tasks`` and ``--fewest-tasks`` the graphs of such sizes.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import chain, cholesky, fft, gaussian
from dfcompile.generators.single_operators import matmul
from dfcompile.options import Effort
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling

VOLUME = 2048
PES = (16, 64, 128)
MEDIAN_GOAL, WORST_GOAL = 5.0, 15.0  # percent


def product(size: int, _volume: int, _seed: int) -> CanonicalDag:
    """Return a product of square matrices: its volumes are those of the arrays."""
    return matmul(size, size, size)


FAMILIES: dict[str, tuple[Callable[..., CanonicalDag], tuple[int, ...], int]] = {
    "chain": (chain, (8, 128, 1000), 10_000),
    "fft": (fft, (16, 32, 64), 1024),
    "gaussian": (gaussian, (8, 16, 44), 140),
    "cholesky": (cholesky, (5, 8, 17), 38),
    "matmul": (product, (8, 32), 96),
}


@dataclass(frozen=True, slots=True)
class Gap:
    """One schedule and its bound in cycles, what is held in percent, whether its times are exact, CPU seconds."""

    makespan_cycles: int
    bound_cycles: int
    held: float
    is_exact: bool
    cpu_s: float

    @property
    def percent(self) -> float:
        """What it takes more than the bound."""
        return 100 * (self.makespan_cycles / self.bound_cycles - 1)

    @property
    def is_proved(self) -> bool:
        """Whether no schedule is shorter."""
        return self.is_exact and self.makespan_cycles <= self.bound_cycles


def gap(dag: CanonicalDag, pes: int, effort: Effort) -> Gap:
    """Schedule a graph by default."""
    begin = time.process_time()
    found = Scheduling(dag).on(ScheduleOptions(pes, "best", effort=effort))
    cpu_s, figures = time.process_time() - begin, found.figures
    makespan, task = figures.makespan_cycles or 0, dag.is_computational
    held = int((found.schedule.last_out - found.schedule.start - dag.work)[task].sum()) / (pes * makespan)
    return Gap(makespan, figures.lower_bound_cycles, 100 * held, figures.is_exact, cpu_s)


def reason(graph: tuple[str, int], pes: int, found: Sequence[Gap]) -> str:
    """Return what the gap of the worst graph consists of, if the row misses the goal: `--effort high` knows more."""
    percents = [one.percent for one in found]
    if statistics.median(percents) <= MEDIAN_GOAL and max(percents) <= WORST_GOAL:
        return ""
    seed = percents.index(max(percents))
    more, own = gap(FAMILIES[graph[0]][0](graph[1], VOLUME, seed), pes, Effort.HIGH), found[seed]
    shorter = 100 * (own.makespan_cycles - more.makespan_cycles) / own.bound_cycles
    raised = 100 * (more.bound_cycles - own.bound_cycles) / own.bound_cycles
    return f"seed {seed}: schedule {shorter:.1f}, bound {raised:.1f}, unknown {percents[seed] - shorter - raised:.1f}"


def row(graph: tuple[str, int], pes: int, found: Sequence[Gap], why: str) -> str:
    """Return a line of the table."""
    family, size = graph
    tasks, seeds = FAMILIES[family][0](size, VOLUME, 0).tasks_count, len(found)
    percents = [one.percent for one in found]
    proved = sum(one.is_proved for one in found)
    steady = sum(not one.is_exact for one in found)
    cells = (
        f"{family} {size}", f"{tasks:,}", str(pes), f"{statistics.median(percents):.1f}", f"{max(percents):.1f}",
        f"{statistics.median(one.held for one in found):.0f}", f"{proved} of {seeds}", str(steady),
        f"{statistics.median(one.cpu_s for one in found):.2f}", why,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="of random volumes")
    parser.add_argument("--effort", type=Effort, choices=list(Effort), default=Effort.DEFAULT)
    parser.add_argument("--large", action="store_true", help="with ten thousand tasks as well")
    parser.add_argument("--most-tasks", type=int, default=10**6, help="of a graph")
    parser.add_argument("--fewest-tasks", type=int, default=0, help="of a graph")
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    options = parser.parse_args(words)
    heading = (
        "graph",
        "tasks",
        "PEs",
        "median gap %",
        "worst %",
        "held %",
        "proved optimal",
        "steady",
        "CPU s",
        "of the worst gap, %",
    )
    print(f"| {' | '.join(heading)} |\n|{'---|' * len(heading)}", flush=True)
    everything: list[Gap] = []
    for family in options.families:
        make, sizes, large = FAMILIES[family]
        for size in (*sizes, *((large,) if options.large else ())):
            tasks = make(size, VOLUME, 0).tasks_count
            for pes in PES if options.fewest_tasks <= tasks <= options.most_tasks else ():
                found = [gap(make(size, VOLUME, seed), pes, options.effort) for seed in range(options.seeds)]
                why = reason((family, size), pes, found) if options.effort is Effort.DEFAULT else ""
                print(row((family, size), pes, found, why), flush=True)
                everything.extend(found)
    percents = [one.percent for one in everything]
    proved = f"proved optimal {sum(one.is_proved for one in everything)} of {len(everything)}"
    print(f"\n{proved}, gaps: median {statistics.median(percents):.1f} %, worst {max(percents):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

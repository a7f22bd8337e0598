"""Which way to invert a covariance, on how many processing elements, with how much memory: all of them compared.

Prints makespan, I/O and area of every combination; a star marks those that no other one beats in all three. Schedules
are made as `dfcompile` makes them by default. The iterations of the subcarrier map are divided over as many tasks as
`--unroll` says.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.dfmodel_backend import load_system
from dfcompile.exploration.asked import KB_BYTES, Machine, Objective, figures_of, pareto_set
from dfcompile.exploration.job import Job, run_job
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.lowering import lower_to_canonical, registered_expansions
from dfcompile.lowering.levels import graph_of, level_two
from dfcompile.options import Choice, Effort

PES = (32, 64, 128, 256, 512, 1024)
MEMORIES_KB = (256, 1024, 8192)
EXPANSIONS = ("cholesky", "lu", "gauss-jordan")
OBJECTIVES = (Objective.MAKESPAN, Objective.IO, Objective.AREA)


@dataclass(frozen=True, slots=True)
class Point:
    """One combination, and what it takes."""

    expansion: str
    pes: int
    memory_kb: int
    tasks: int
    makespan_cycles: int
    io_bytes: int
    area: float
    cost_usd: float
    figures: tuple[float, ...]


def points(dims: dict[str, int], unroll: int) -> list[Point]:
    """Lower the program once per expansion, schedule it once per number of processing elements."""
    model = read_model(Path(__file__).parent / "mimo.py", ReadOptions(dims=dims))
    table, system = registered_expansions(), load_system(None)
    found = []
    for expansion in EXPANSIONS:
        choices = (Choice("linalg.inv", expansion),)
        graph = graph_of(level_two(lower_to_canonical(model.program, table, choices), table, choices, ()))
        for pes in PES:
            memories = tuple(memory * KB_BYTES for memory in MEMORIES_KB)
            for outcome in run_job(Job(graph, Granularity(pieces=unroll), pes, "best", memories, Effort.QUICK)):
                machine = Machine(pes, outcome.memory_bytes, system.one_chip.with_cores(pes))
                figures = figures_of(OBJECTIVES, machine, outcome.makespan_cycles, outcome.io_bytes)
                found.append(
                    Point(
                        expansion,
                        pes,
                        outcome.memory_bytes // KB_BYTES,
                        outcome.tasks,
                        machine.makespan_cycles(outcome.makespan_cycles, outcome.io_bytes),
                        outcome.io_bytes,
                        machine.area,
                        machine.cost_usd,
                        figures,
                    )
                )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("subcarriers", 36), ("antennas", 64), ("layers", 8), ("unroll", 36)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    dims = {"N": given.subcarriers, "R": given.antennas, "L": given.layers}
    found = points(dims, given.unroll)
    front = pareto_set([point.figures for point in found])
    print(" PEs  memory kB     expansion   tasks   makespan cycles        I/O bytes    area     USD")
    for number, each in enumerate(found):
        mark = "*" if number in front else " "
        print(
            f"{each.pes:4} {each.memory_kb:10,} {mark} {each.expansion:>12} {each.tasks:7,} "
            f"{each.makespan_cycles:17,} {each.io_bytes:16,} {each.area:7,.0f} {each.cost_usd:7.2f}"
        )
    print(f"* in the Pareto set of makespan, I/O and area: {len(front)} of {len(found)}")


if __name__ == "__main__":
    main()

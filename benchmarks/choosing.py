"""The automatic choice beside the uniform ones: ``python -m benchmarks.choosing MODEL P[,P…]``.

A uniform choice is scheduled unless a bound says that it is no shorter than one that was, or it has too many tasks.
"""

import sys
import time
from collections import Counter
from pathlib import Path

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.choosing import Selection
from dfcompile.choosing.automatic import AutomaticChoice
from dfcompile.choosing.sketches import Sketch
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes
from dfcompile.options.numbers import counts
from dfcompile.scheduler import ScheduleOptions, schedule

MOST_TASKS = 4_000_000  # of a uniform choice that is scheduled


def makespan(sketch: Sketch, options: ScheduleOptions) -> int:
    """Return what the tasks of a choice take."""
    dag = extract_graph(sketch.outline.graph, ExtractionOptions(granularity=sketch.candidate.granularity))
    return schedule(dag, options).makespan_cycles


def best_uniform(found: Selection, options: ScheduleOptions) -> tuple[int, str, str]:
    """Return the makespan of the best uniform choice, its name, and what became of the others."""
    least, which, counts = 0, "", Counter[str]()
    for sketch in sorted((rival.sketch for rival in found.rivals), key=lambda each: each.estimate.cycles):
        if which and sketch.estimate.bound_cycles >= least:
            counts["excluded"] += 1
        elif sketch.estimate.tasks > MOST_TASKS:
            counts["left"] += 1
        else:
            counts["scheduled"] += 1
            cycles = makespan(sketch, options)
            if not which or cycles < least:
                least, which = cycles, str(sketch.candidate)
    return least, which, ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), reverse=True))


def rows(model: Path, pes: tuple[int, ...]) -> None:
    """Print a row per number of processing elements."""
    table = registered_expansions()
    program = read_model(model, ReadOptions(shapes={})).program
    choice = AutomaticChoice(
        outline_of=OutlinedModel(program, table).outline,
        known=known_alternatives(program, table),
        table=table,
        rules=(),
        granularity=None,
        volumes=Volumes.EXACT,
        finish=lambda dag: dag,
    )
    print("| PEs | published | best uniform | which | uniform choices | auto | auto / best uniform |")
    print("|---|---|---|---|---|---|---|")
    for count in pes:
        options = ScheduleOptions(count, "best", effort=Effort.QUICK)
        found = choice.on(options)
        auto = makespan(found.sketch, options)
        published = 0 if found.default is None else makespan(found.default, options)
        best, which, others = best_uniform(found, options)
        cells = (f"{count:,}", f"{published:,}", f"{best:,}", f"`{which}`", others, f"{auto:,}", f"{auto / best:.3f}")
        print(f"| {' | '.join(cells)} |", f"<!-- {time.process_time():.0f} CPU s, {names(found)} -->", flush=True)


def names(found: Selection) -> str:
    """Return how many operators have each expansion."""
    taken = Counter(f"{op}={name}" for each in found.expansions.values() for op, name in each.items())
    return " ".join(f"{name} x{count}" for name, count in taken.items())


if __name__ == "__main__":
    rows(Path(sys.argv[1]), counts("--pes", sys.argv[2]))

"""The automatic choice beside every uniform one, each scheduled: ``python -m benchmarks.choosing MODEL P[,P…]``."""

import sys
from pathlib import Path

from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.choosing import AutomaticChoice, Sketch
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes, parse_pes
from dfcompile.scheduler import ScheduleOptions, schedule


def makespan(sketch: Sketch, options: ScheduleOptions) -> int:
    """Return what the tasks of a choice take."""
    dag = extract_graph(sketch.outline.graph, ExtractionOptions(granularity=sketch.candidate.granularity))
    return schedule(dag, options).makespan_cycles


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
    print("| PEs | published | best uniform | which | auto | auto / best uniform |\n|---|---|---|---|---|---|")
    for count in pes:
        options = ScheduleOptions(count, "best", effort=Effort.QUICK)
        found = choice.on(options)
        least = makespan(found.sketch, options)
        published = 0 if found.default is None else makespan(found.default, options)
        best, which = min((makespan(rival.sketch, options), str(rival.sketch.candidate)) for rival in found.rivals)
        print(f"| {count:,} | {published:,} | {best:,} | {which} | {least:,} | {least / best:.3f} |", flush=True)


if __name__ == "__main__":
    rows(Path(sys.argv[1]), parse_pes(sys.argv[2]))

"""The automatic choice of expansions for a program, and what choices take that somebody names."""

from collections.abc import Sequence

import numpy as np

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract
from dfcompile.choosing.automatic import AutomaticChoice
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, ExpansionRule, Volumes
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.onnx_text import program_from_text

TABLE = registered_expansions()


def automatic(
    program: Program, rules: tuple[ExpansionRule, ...] = (), granularity: Granularity | None = None
) -> AutomaticChoice:
    """Return the choice among expansions that rules leave."""
    outline_of = OutlinedModel(program, TABLE).outline
    known = known_alternatives(program, TABLE)
    return AutomaticChoice(outline_of, known, TABLE, rules, granularity, Volumes.EXACT, lambda dag: dag)


def least_makespan(
    program: Program, choices: tuple[Choice, ...], every: Sequence[Granularity], options: ScheduleOptions
) -> int:
    """Return the least makespan of a lowering over granularities."""
    maps = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
    dags = (extract(maps.sdfg, ExtractionOptions(granularity=granularity)) for granularity in every)
    return min(schedule(dag, options).makespan_cycles for dag in dags)


def convolutions() -> Program:
    """Two convolutions of different sizes and what follows them in a classifier."""
    return program_from_text(
        "g (float[1,1,10,10] x) => (float[1,10] z) "
        "{ a = Conv(x, v) r = Relu(a) b = Conv(r, w) f = Flatten(b) z = MatMul(f, u) }",
        v=np.ones((4, 1, 4, 4), np.float32),
        w=np.ones((8, 4, 6, 6), np.float32),
        u=np.ones((32, 10), np.float32),
    )

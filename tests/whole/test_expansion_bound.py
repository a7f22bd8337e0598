"""The bound over the known expansions of a whole network."""

from functools import cache
from itertools import product

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Program, read_model
from dfcompile.lowering import (
    Choice,
    ExpansionTable,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    registered_expansions,
)
from dfcompile.lowering.alternatives.bound import expansion_bound
from dfcompile.options import Effort
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.locations import EXAMPLES

# Under transforms LeNet's convolutions have the least work and many tasks that wait: the bound is no near one then.
_TRANSFORMS = ("fft", "winograd", "winograd4")
TABLE = ExpansionTable.of(
    plugin
    for plugin in registered_expansions().plugins
    if (plugin.value.op_type, plugin.value.name) not in {("Conv", name) for name in _TRANSFORMS}
)


@cache
def lenet() -> Program:
    return read_model(EXAMPLES / "lenet" / "model.py").program


@cache
def dag(choices: tuple[Choice, ...]) -> CanonicalDag:
    maps = lower_to_maps(lower_to_canonical(lenet(), TABLE, choices), TABLE, choices)
    return extract(maps.sdfg)


def makespan(choices: tuple[Choice, ...], options: ScheduleOptions) -> int:
    found = schedule(dag(choices), options)
    return max(found.last_out.tolist(), default=0)


_CONVOLUTIONS = (("im2col", "filters"), ("direct", "filters"), ("direct", "windows"))


@pytest.mark.parametrize("pes", [16, 128])
def test_bound_holds_for_lenet_and_is_near_its_best_expansions(pes: int) -> None:
    """What a quick schedule finds best is scheduled with more effort."""
    bound = expansion_bound(known_alternatives(lenet(), TABLE), pes).cycles
    quick = ScheduleOptions(pes, "best", effort=Effort.QUICK)
    lowerings = [
        (Choice("Conv", conv), Choice("Convolution", tasks), Choice("MatMul", name))
        for (conv, tasks), name in product(_CONVOLUTIONS, ["mv", "op", "columns"])
    ]
    best = min(lowerings, key=lambda choices: makespan(choices, quick))

    least = makespan(best, ScheduleOptions(pes, "best"))

    assert bound <= least <= 1.6 * bound
    assert expansion_bound(known_alternatives(lenet(), registered_expansions()), pes).cycles <= bound

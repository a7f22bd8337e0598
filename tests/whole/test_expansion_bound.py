"""The bound over the known expansions of a whole network."""

from itertools import product

import pytest

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
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.locations import EXAMPLES

# Under transforms LeNet's convolutions have the least work and many tasks that wait: the bound is no near one then.
_TRANSFORMS = ("fft", "winograd", "winograd4")
TABLE = ExpansionTable.of(
    plugin
    for plugin in registered_expansions().plugins
    if (plugin.value.op_type, plugin.value.name) not in {("Conv", name) for name in _TRANSFORMS}
)


def makespan(program: Program, choices: list[Choice], pes: int, partition: str, *, barrier: bool | None = None) -> int:
    maps = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
    dag = extract(maps.sdfg)
    found = schedule(dag, ScheduleOptions(pes=pes, partition=partition, barrier=barrier))
    return max(found.last_out.tolist(), default=0)


_CONVOLUTIONS = (("im2col", "filters"), ("direct", "filters"), ("direct", "windows"))


@pytest.mark.parametrize("pes", [16, 128])
def test_bound_holds_for_lenet_and_is_near_its_best_expansions(pes: int) -> None:
    program = read_model(EXAMPLES / "lenet" / "model.py").program
    bound = expansion_bound(known_alternatives(program, TABLE), pes).cycles

    least = min(
        makespan(program, [Choice("Conv", conv), Choice("Convolution", tasks), Choice("MatMul", name)], pes, "best")
        for (conv, tasks), name in product(_CONVOLUTIONS, ["mv", "op", "columns"])
    )

    assert bound <= least <= 1.6 * bound
    assert expansion_bound(known_alternatives(program, registered_expansions()), pes).cycles <= bound

"""The published convolution table: makespans of three expansions against PE counts."""

import random

import pytest

from dfcompile.scheduler import (
    ScheduleOptions,
    Timing,
    check,
    check_non_streaming,
    figures,
    schedule,
    schedule_non_streaming,
)
from tests.unit.scheduler.convolution import convolution_dag

PES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

WHOLE_ARRAYS = {
    "mv": (522_433, 270_146, 145_730, 83_522, 52_418, 35_138, 28_226, 24_770, 21_314),
    "op": (626_113, 366_913, 194_113, *[107_713] * 6),
    "lmv": (64_515, 50_115, *[35_715] * 7),
}
OWN_SLICES = {
    "mv": (46_393, 32_138, 26_738, 24_038, 22_688, 21_938, 21_638, 21_488, 21_867),
    "op": (45_505, 35_137, 28_225, *[24_769] * 6),
    "lmv": (64_535, 50_135, *[35_735] * 7),
}
NON_STREAMING = {"mv": (149_184, 42_048), "op": (280_512, 194_112), "lmv": (53_568, 53_568)}
IO_ELEMENTS = {"mv": 129_474, "op": 222_636, "lmv": 150_636}


@pytest.mark.parametrize("expansion", ["mv", "op", "lmv"])
@pytest.mark.parametrize("whole_arrays", [True, False])
def test_relaxed_blocks_give_the_published_makespans(expansion: str, whole_arrays: bool) -> None:
    dag = convolution_dag(expansion, whole_arrays=whole_arrays)

    makespans = []
    for pes in PES:
        result = schedule(dag, ScheduleOptions(pes, timing=Timing.STEADY))
        check(dag, result)
        makespans.append(result.makespan_cycles)

    assert tuple(makespans) == (WHOLE_ARRAYS if whole_arrays else OWN_SLICES)[expansion]


@pytest.mark.parametrize("expansion", ["mv", "op", "lmv"])
def test_baseline_and_memory_traffic_are_the_published_ones(expansion: str) -> None:
    dag = convolution_dag(expansion, whole_arrays=True)

    found = []
    for pes in (16, 128):
        baseline = schedule_non_streaming(dag, pes)
        check_non_streaming(dag, baseline)
        result = figures(dag, schedule(dag, ScheduleOptions(pes, timing=Timing.STEADY)), baseline)
        found.append(result.non_streaming_makespan_cycles)
        assert result.io_elements == IO_ELEMENTS[expansion]

    assert tuple(found) == NON_STREAMING[expansion]


@pytest.mark.parametrize("expansion", ["mv", "op", "lmv"])
def test_makespans_do_not_depend_on_the_order_of_nodes(expansion: str) -> None:
    nodes = convolution_dag(expansion, whole_arrays=True).nodes_count
    shuffled = list(range(nodes))
    random.Random(7).shuffle(shuffled)

    for whole_arrays, table in ((True, WHOLE_ARRAYS), (False, OWN_SLICES)):
        dag = convolution_dag(expansion, whole_arrays=whole_arrays, permutation=shuffled)
        makespans = [schedule(dag, ScheduleOptions(pes, timing=Timing.STEADY)).makespan_cycles for pes in (16, 128)]
        assert makespans == [table[expansion][PES.index(pes)] for pes in (16, 128)]

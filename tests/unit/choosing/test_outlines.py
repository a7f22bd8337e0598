"""Models without their SDFGs: the same scopes, streams and tasks; bounds and estimates of these."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract
from dfcompile.canonical_dag.extraction.extract import extract_graph, flow_of
from dfcompile.choosing.estimate import estimate
from dfcompile.errors import UserError
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.alternatives.bound import divided_bound
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, Effort, Volumes
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.examples import examples
from tests.onnx_text import program_from_text
from tests.unit.choosing.random_programs import choices, granularities, programs

TABLE = registered_expansions()


def lowered(program: Program, chosen: list[Choice], options: ExtractionOptions) -> CanonicalDag:
    maps = lower_to_maps(lower_to_canonical(program, TABLE, chosen), TABLE, chosen)
    return extract(maps.sdfg, options)


@given(programs(), choices(), granularities, st.sampled_from(list(Volumes)))
@examples(30)
def test_outline_has_the_tasks_of_the_lowered_model(
    program: Program, chosen: list[Choice], granularity: Granularity, volumes: Volumes
) -> None:
    options = ExtractionOptions(volumes, granularity)
    outline = OutlinedModel(program, TABLE).outline(chosen)
    maps = lower_to_maps(lower_to_canonical(program, TABLE, chosen), TABLE, chosen)

    found, expected = extract_graph(outline.graph, options), lowered(program, chosen, options)

    assert outline.chosen == maps.chosen
    for column in ("edge_source", "edge_target", "edge_volume", "edge_element_bytes", "is_computational", "work"):
        assert np.array_equal(getattr(found, column), getattr(expected, column))


@given(programs(), choices(), granularities, st.sampled_from([1, 2, 5, 16, 300]))
@examples(30)
def test_no_schedule_is_below_the_bound_of_an_estimate(
    program: Program, chosen: list[Choice], granularity: Granularity, pes: int
) -> None:
    graph = OutlinedModel(program, TABLE).outline(chosen).graph
    options = ExtractionOptions(granularity=granularity)
    found = estimate(flow_of(graph, options), pes)
    dag = extract_graph(graph, options)

    made = schedule(dag, ScheduleOptions(pes, "best", effort=Effort.QUICK))

    assert found.tasks == dag.tasks_count
    assert found.bound_cycles <= made.makespan_cycles
    assert found.bound_cycles <= found.cycles
    assert divided_bound(known_alternatives(program, TABLE), pes).cycles <= made.makespan_cycles


def test_estimate_of_one_family_is_exact() -> None:
    """Of 7 tasks of 12 cycles on 3 elements, each element does 2 or 3."""
    program = program_from_text(
        "g (float[1,3,2,2] x) => (float[1,7,2,2] y) { y = Conv(x, w) }", w=np.ones((7, 3, 1, 1), np.float32)
    )
    graph = OutlinedModel(program, TABLE).outline([Choice("Conv", "direct")]).graph

    found = estimate(flow_of(graph), 3)

    assert (found.tasks, found.work_cycles, found.cycles, found.bound_cycles) == (7, 7 * 12, 3 * 12, 7 * 12 // 3)
    assert estimate(flow_of(graph), 7).cycles == 12


def test_pieces_divide_spatial_and_other_parallel_loops_and_no_sum() -> None:
    program = program_from_text(
        "g (float[1,3,4,4] x) => (float[1,2,4,4] y) { y = Conv(x, w) }", w=np.ones((2, 3, 1, 1), np.float32)
    )
    graph = OutlinedModel(program, TABLE).outline([Choice("Conv", "direct")]).graph

    def tasks(granularity: Granularity) -> list[int]:
        work: list[int] = extract_graph(graph, ExtractionOptions(granularity=granularity)).work.tolist()
        return work

    assert sorted(work for work in tasks(Granularity(pieces=1000)) if work) == [3] * 32  # three channels are a sum
    assert sorted(work for work in tasks(Granularity(pieces=1)) if work) == [96]
    assert tasks(Granularity(pieces=8)) == tasks(Granularity(own=(("Conv_0", 8),)))
    assert tasks(Granularity()) == tasks(Granularity(pieces=8, own=(("Conv_0", None),)))


def test_expansion_that_does_not_take_an_operator_is_an_error_of_its_outline() -> None:
    program = program_from_text("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    without = replace(TABLE, by_operator={key: value for key, value in TABLE.by_operator.items() if key[1] != "Relu"})

    with pytest.raises(UserError, match="no expansion for 'Relu'"):
        OutlinedModel(program, without).outline([])

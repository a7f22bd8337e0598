"""Models without their SDFGs: the same scopes, streams and tasks; bounds and estimates of these."""

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
from dfcompile.lowering import (
    CanonicalFragment,
    Expansion,
    MapFragment,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    lower_to_nests,
    registered_expansions,
)
from dfcompile.lowering.alternatives.bound import divided_bound, longest_chain
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.lowering.node import Node
from dfcompile.options import Choice, Effort, Volumes
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.examples import examples
from tests.onnx_nodes import checked_maps
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
    maps = checked_maps(lower_to_nests(lower_to_canonical(program, TABLE, chosen), TABLE, chosen))

    found, expected = extract_graph(outline.graph, options), lowered(program, chosen, options)

    assert outline.chosen == maps.chosen
    for column in ("edge_source", "edge_target", "edge_volume", "edge_element_bytes", "is_computational", "work"):
        assert np.array_equal(getattr(found, column), getattr(expected, column))


ENDS = [
    # an output that is a view of what an operator wrote, which others read as well
    """g (float[2,6] x) => (float[12] y, float[2,6] z) {
        a = Relu(x)
        y = Reshape(a, twelve)
        z = Neg(a)
    }""",
    # an output that is read on
    """g (float[2,6] x) => (float[12] y, float[12] z) {
        a = Relu(x)
        y = Reshape(a, twelve)
        z = Neg(y)
    }""",
    # two outputs that show one array: the second is a copy
    """g (float[2,6] x) => (float[12] y, float[1,12] z) {
        a = Relu(x)
        y = Reshape(a, twelve)
        z = Flatten<axis=0>(a)
    }""",
    # an output that shows an input is a copy
    "g (float[2,6] x) => (float[12] y) { y = Reshape(x, twelve) }",
    # a view of a view
    """g (float[2,6] x) => (float[12] y) {
        a = Relu(x)
        b = Flatten<axis=0>(a)
        y = Reshape(b, twelve)
    }""",
]


@pytest.mark.parametrize("text", ENDS)
def test_outline_of_a_model_that_ends_in_a_view_is_that_of_the_lowered_model(text: str) -> None:
    program = program_from_text(text, twelve=np.array([12], np.int64))

    outline = OutlinedModel(program, TABLE).outline([])
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)
    found, expected = extract_graph(outline.graph), extract(maps.sdfg)

    assert outline.chosen == maps.chosen
    for column in ("edge_source", "edge_target", "edge_volume", "edge_element_bytes", "is_computational", "work"):
        assert np.array_equal(getattr(found, column), getattr(expected, column))


def test_each_operator_is_lowered_once_by_each_expansion_however_many_choices_are_outlined() -> None:
    seen: list[tuple[str, str]] = []

    def counted(found: Expansion) -> Expansion:
        def rewrite(op: Node, fragment: CanonicalFragment | MapFragment) -> None:
            seen.append((op.name, found.name))
            found.rewrite(op, fragment)

        return replace(found, rewrite=rewrite)

    by_operator = {
        key: {name: counted(each) for name, each in named.items()} for key, named in TABLE.by_operator.items()
    }
    program = program_from_text(
        "g (float[1,3,6,6] x) => (float[1,3,6,6] z) { y = Conv<pads=[1,1,1,1]>(x, w) z = Conv<pads=[1,1,1,1]>(y, w) }",
        w=np.ones((3, 3, 3, 3), np.float32),
    )
    model = OutlinedModel(program, replace(TABLE, by_operator=by_operator))

    for conv in ("direct", "winograd", "im2col"):
        for product in ("mv", "ip", "op"):
            model.outline([Choice("Conv", conv), Choice("MatMul", product)])
            model.outline([Choice("Conv", conv, "Conv_0"), Choice("MatMul", product)])

    of_model = [each for each in seen if "." not in each[0]]
    assert len(of_model) == 6
    assert set(of_model) == {(f"Conv_{at}", name) for at in (0, 1) for name in ("direct", "winograd", "im2col")}
    assert max(seen.count(each) for each in seen) <= 3  # of one name under each expansion of the convolution


def test_all_operators_that_have_no_expansion_are_named_at_once() -> None:
    program = program_from_text("g (float[2,3] x) => (float[2,3] z) { y = Relu(x) z = Tanh(y) }")
    left = {key: value for key, value in TABLE.by_operator.items() if key[1] not in ("Relu", "Tanh")}

    with pytest.raises(UserError, match=r"Relu.*Tanh"):
        OutlinedModel(program, replace(TABLE, by_operator=left)).outline([])


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
    known = known_alternatives(program, TABLE)
    assert divided_bound(known, pes).cycles <= made.makespan_cycles
    assert 0 < longest_chain(known) <= made.makespan_cycles


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


def test_the_constants_of_a_choice_are_those_of_the_model_that_is_lowered_by_it() -> None:
    """Weights of the model, and matrices that Winograd's convolution brings."""
    text = "g (float[1,2,4,4] x) => (float[1,3,4,4] y) { r = Relu(x) y = Conv<pads=[1,1,1,1]>(r, w) }"
    program = program_from_text(text, w=np.ones((3, 2, 3, 3), np.float32))
    outline = OutlinedModel(program, registered_expansions()).outline([Choice("Conv", "winograd")])

    matrices = {f"Conv_0_{name}_matrix{axis}" for name in ("data", "filters", "result") for axis in (0, 1)}
    assert set(outline.parameters) == {"w"} | matrices

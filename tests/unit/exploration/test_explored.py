"""Explorations of small models: as full enumeration finds them; never below their bounds."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.dfmodel_backend import load_system
from dfcompile.errors import UserError
from dfcompile.exploration import Asked, Explored, Objective, explore_space
from dfcompile.exploration.asked import Figures, covers, figures_of, pareto_set
from dfcompile.exploration.explored import ResultStore
from dfcompile.exploration.job import Job, run_job
from dfcompile.exploration.space import Bounds, choices_of, space_of
from dfcompile.exploration.workers import InThisProcess
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import ExpansionRule
from dfcompile.options.readers import parse_expand
from tests.examples import examples
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
ALL = tuple(Objective)
THREE = (Objective.MAKESPAN, Objective.IO, Objective.AREA)


def asked(
    pes: tuple[int, ...],
    memories: tuple[int, ...],
    rules: tuple[ExpansionRule, ...] = (),
    granularities: tuple[Granularity, ...] = (Granularity(),),
    objectives: tuple[Objective, ...] = THREE,
    tries: int = 10**6,
) -> Asked:
    return Asked(pes, memories, objectives, rules, granularities, load_system(None), tries=tries)


def explored(program: Program, question: Asked, folder: Path) -> Explored:
    store = ResultStore(folder / "kept.cache", lambda _line: None)
    try:
        return explore_space(program, TABLE, question, store, InThisProcess(), lambda _progress: None)
    finally:
        store.close()


def all_figures(program: Program, question: Asked) -> list[Figures]:
    """Schedule every lowering on every number of processing elements; nothing is left out."""
    outlined = OutlinedModel(program, TABLE)
    space = space_of(known_alternatives(program, TABLE), outlined.outline(()), question.rules)
    bounds = Bounds(question, space, outlined)
    found = []
    for picks in product(*(range(len(group.options)) for group in space.groups)):
        graph = outlined.outline(choices_of(space.groups, picks)).graph
        for (number, granularity), pes in product(enumerate(question.granularities), question.pes):
            outcomes = run_job(Job(graph, granularity, pes, question.partition, question.memories))
            figures = [
                figures_of(
                    question.objectives, question.machine(pes, one.memory_bytes), one.makespan_cycles, one.io_bytes
                )
                for one in outcomes
            ]
            for part in range(len(picks) + 1):  # of some groups nothing is known
                padded = (*picks[:part], *(None for _ in picks[part:]))
                for least, real in zip(bounds.of(padded, number, pes), figures, strict=True):
                    assert covers(least, real)
            found.extend(figures)
    return found


@st.composite
def programs(draw: st.DrawFn) -> Program:
    m, k, n, o = (draw(st.integers(1, 6)) for _ in range(4))
    between = draw(st.sampled_from(["Softmax", "Relu", "Identity"]))
    return program_from_text(
        f"g (float[{m},{k}] x, float[{k},{n}] w, float[{n},{o}] v) => (float[{m},{o}] y) "
        f"{{ a = MatMul(x, w) b = {between}(a) y = MatMul(b, v) }}"
    )


@given(
    programs(),
    st.sets(st.integers(1, 12), min_size=1, max_size=2),
    st.sets(st.integers(1, 400), min_size=1, max_size=2),
    st.sampled_from([(Granularity(),), (Granularity(), Granularity(pieces=3)), (Granularity(max_tasks=2),)]),
    st.sampled_from([THREE, ALL, (Objective.IO,), (Objective.MAKESPAN, Objective.COST)]),
)
@examples(12)
def test_exploration_is_what_full_enumeration_finds(
    tmp_path_factory: pytest.TempPathFactory,
    program: Program,
    pes: set[int],
    memories: set[int],
    granularities: tuple[Granularity, ...],
    objectives: tuple[Objective, ...],
) -> None:
    rules = parse_expand(["MatMul=mv,op,lmv,ip"])
    question = asked(tuple(sorted(pes)), tuple(sorted(memories)), rules, granularities, objectives)

    found = explored(program, question, tmp_path_factory.mktemp("cache")).found
    every = all_figures(program, question)

    assert found.gap == 0
    assert sorted(point.figures for point in found.front) == sorted(every[at] for at in pareto_set(every))


def test_fewer_tries_leave_a_gap_and_say_it(tmp_path: Path) -> None:
    program = program_from_text(
        "g (float[8,9] x, float[9,7] w, float[7,6] v) => (float[8,6] y) { a = MatMul(x, w) y = MatMul(a, v) }"
    )
    rules = parse_expand(["MatMul=mv,op,lmv,ip"])
    few = explored(program, asked((4, 8), (100,), rules, tries=4), tmp_path).found
    proved = explored(program, asked((4, 8), (100,), rules), tmp_path).found

    assert few.schedules == 4
    assert few.gap > 0
    assert few.open_combinations > 0
    assert proved.gap == 0 == proved.open_combinations
    for point in proved.front:  # nothing is more than the gap better than what was found
        assert any(
            all(
                mine <= theirs * (1 + few.gap) * (1 + 1e-12)
                for mine, theirs in zip(one.figures, point.figures, strict=True)
            )
            for one in few.front
        )


def test_second_run_computes_nothing_and_another_memory_is_a_new_result(tmp_path: Path) -> None:
    program = program_from_text("g (float[8,9] x, float[9,7] w) => (float[8,7] y) { y = MatMul(x, w) }")
    rules = parse_expand(["MatMul=mv,op"])
    first = explored(program, asked((4,), (100,), rules), tmp_path)
    second = explored(program, asked((4,), (100,), rules), tmp_path)
    third = explored(program, asked((4,), (100, 200), rules), tmp_path)

    assert (first.computed, second.computed, third.computed) == (2, 0, 2)
    assert first.found == second.found


def test_operators_of_one_shape_share_a_choice(tmp_path: Path) -> None:
    program = program_from_text(
        "g (float[6,6] x, float[6,6] w, float[6,6] v) => (float[6,6] y) { a = MatMul(x, w) y = MatMul(a, v) }"
    )
    found = explored(program, asked((4,), (100,), parse_expand(["MatMul=mv,op"])), tmp_path)

    assert [len(group.origins) for group in found.groups] == [2]
    assert found.combinations == 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("MatMull=mv", "no operator type 'MatMull'"),
        ("MatMul=mw", r"MatMul=mw: unknown \(known: columns, ip, lmv, mv, op, rows\)"),
        ("Conv=im2col", "no such operator"),
    ],
)
def test_rule_about_nothing(tmp_path: Path, rule: str, message: str) -> None:
    program = program_from_text("g (float[6,6] x, float[6,6] w) => (float[6,6] y) { y = MatMul(x, w) }")

    with pytest.raises(UserError, match=message):
        explored(program, asked((4,), (100,), parse_expand([rule])), tmp_path)


PRODUCT = "g (float[4,64] x, float[64,4] w) => (float[4,4] y) { y = MatMul(x, w) }"


def test_it_is_said_what_tasks_in_pieces_may_bring(tmp_path: Path) -> None:
    rules = parse_expand(("MatMul=lmv",))

    (finer,) = explored(program_from_text(PRODUCT), asked((16,), (2**20,), rules), tmp_path).finer

    assert (finer.pes, finer.pieces % 16) == (16, 0)
    pieces = asked((16,), (2**20,), rules, (Granularity(pieces=finer.pieces),))
    (point,) = explored(program_from_text(PRODUCT), pieces, tmp_path).found.front
    assert point.outcome.makespan_cycles < finer.found_cycles
    assert abs(finer.estimated_cycles - point.outcome.makespan_cycles) < finer.found_cycles / 10


def test_it_is_not_said_where_pieces_were_looked_at_or_are_not_faster(tmp_path: Path) -> None:
    program = program_from_text(PRODUCT)
    both = asked((16,), (2**20,), granularities=(Granularity(), Granularity(pieces=16)))
    of_bytes = asked((16,), (2**20,), objectives=(Objective.IO,))

    assert not explored(program, both, tmp_path).finer
    assert not explored(program, of_bytes, tmp_path).finer
    assert not explored(program, asked((1,), (2**20,)), tmp_path).finer

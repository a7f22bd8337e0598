"""What is on the chip: as good as the best of all choices, and accepted by a checker that counts edge by edge."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.errors import VerificationError
from dfcompile.exploration import on_chip
from dfcompile.exploration.on_chip import OnChip, Store, choose_on_chip, peak_bytes, stores_of
from dfcompile.exploration.on_chip_check import check_on_chip
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.scheduler import Schedule, ScheduleOptions, schedule
from tests.examples import examples
from tests.onnx_text import program_from_text


@st.composite
def stores(draw: st.DrawFn) -> tuple[Store, ...]:
    found = []
    for number in range(draw(st.integers(0, 8))):
        first = draw(st.integers(0, 12))
        traffic = draw(st.integers(0, 60))
        least = draw(st.integers(0, traffic))
        end = first + draw(st.integers(0, 8))
        found.append(Store(f"a{number}", draw(st.integers(0, 9)), first, end, traffic, least))
    return tuple(found)


def least_traffic(found: tuple[Store, ...], memory: int) -> int:
    """Try every set; count what is there cycle by cycle."""
    least = sum(store.traffic_bytes for store in found)
    for count in range(len(found) + 1):
        for kept in combinations(range(len(found)), count):
            used = [sum(found[at].size_bytes for at in kept if is_there(found[at], cycle)) for cycle in range(24)]
            if max(used) <= memory:
                traffic = sum(s.least_bytes if at in kept else s.traffic_bytes for at, s in enumerate(found))
                least = min(least, traffic)
    return least


def is_there(store: Store, cycle: int) -> bool:
    return store.first_cycle <= cycle < max(store.end_cycle, store.first_cycle + 1)


@given(stores(), st.integers(1, 25))
@examples(200)
def test_no_choice_leaves_less_traffic(found: tuple[Store, ...], memory: int) -> None:
    chosen = choose_on_chip(found, memory)

    assert chosen.io_bytes == least_traffic(found, memory)
    assert chosen.peak_bytes == peak_bytes([found[at] for at in chosen.stores]) <= memory


@given(stores(), st.integers(1, 25))
@examples(10)
def test_the_integer_program_gives_as_much(found: tuple[Store, ...], memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_chip, "_MOST_STATES", 0)
        by_program = choose_on_chip(found, memory)

    assert by_program.io_bytes == choose_on_chip(found, memory).io_bytes


PROGRAM = program_from_text(
    "g (float[6,8] x, float[8,5] w, float[5,7] v) => (float[6,7] y) "
    "{ a = MatMul(x, w) b = Softmax(a) y = MatMul(b, v) }"
)


@pytest.mark.parametrize("pes", [2, 5, 64])
@pytest.mark.parametrize("memory", [1, 150, 400, 10_000])
def test_checker_recounts_traffic_and_room(pes: int, memory: int) -> None:
    graph = OutlinedModel(PROGRAM, registered_expansions()).outline(()).graph
    dag = extract_graph(graph)
    made: Schedule = schedule(dag, ScheduleOptions(pes))
    found = stores_of(dag, graph.arrays, made)
    chosen = choose_on_chip(found, memory)

    check_on_chip(dag, graph.arrays, made, found, chosen, memory)
    wrong = OnChip(chosen.stores, chosen.io_bytes - 1, chosen.peak_bytes)
    with pytest.raises(VerificationError, match="bytes of traffic against"):
        check_on_chip(dag, graph.arrays, made, found, wrong, memory)
    if chosen.stores:
        with pytest.raises(VerificationError, match=f"against {chosen.peak_bytes - 1}"):
            check_on_chip(dag, graph.arrays, made, found, chosen, chosen.peak_bytes - 1)


def test_all_on_the_chip_leaves_inputs_and_results() -> None:
    graph = OutlinedModel(PROGRAM, registered_expansions()).outline(()).graph
    dag = extract_graph(graph)
    found = stores_of(dag, graph.arrays, schedule(dag, ScheduleOptions(3)))

    assert choose_on_chip(found, 10**6).io_bytes == 4 * (6 * 8 + 8 * 5 + 5 * 7 + 6 * 7)

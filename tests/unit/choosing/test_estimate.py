"""Families of tasks, placed whole rounds at once: the same as task by task."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.flow import uses_of
from dfcompile.choosing.estimate import Memory, least_traffic, traffic
from dfcompile.choosing.placing import Elements, Family, Placed, Placing
from dfcompile.frontend import Program
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Volumes
from tests.examples import examples
from tests.unit.choosing.random_programs import programs

FAMILIES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=12)
Elapsed = np.ndarray[tuple[int], np.dtype[np.int64]]


@given(st.integers(1, 9), FAMILIES)
@examples(200)
def test_runs_of_elements_are_placed_like_single_ones(pes: int, families: list[tuple[int, int, int]]) -> None:
    elements, free = Elements(pes), np.zeros(pes, dtype=np.int64)
    now = 0
    for wait, members, cycles in families:
        now = max(now, int(free.min())) + wait
        first, end, sooner = _placed(free, now, members, cycles)

        assert elements.place(now, members, cycles) == Placed(first, end, cycles, members, sooner)
        assert elements.first_free == free.min()


@given(st.integers(1, 9), FAMILIES, st.integers(1, 40))
@examples(200)
def test_tasks_that_begin_before_a_limit_are_those_that_begin_before_it_anyway(
    pes: int, families: list[tuple[int, int, int]], limit: int
) -> None:
    elements, free = Elements(pes), np.zeros(pes, dtype=np.int64)
    for _, members, cycles in families:
        now = elements.first_free
        before = [begin for begin in _begins(free.copy(), members, cycles) if begin < now + limit]
        _begins(free, len(before), cycles)

        placed = elements.place(now, members, cycles, now + limit)

        assert placed.members == len(before)
        assert placed.end == max(before) + cycles


def _placed(free: Elapsed, now: int, members: int, cycles: int) -> tuple[int, int, int]:
    """Give each task in turn to an element that gets free first, the one that did so first."""
    np.maximum(free, now, out=free)
    first, begins = int(free.min()), _begins(free, members, cycles)
    end = max(begins) + cycles
    return first, end, sum(begin + cycles <= end - cycles for begin in begins)


def _begins(free: Elapsed, members: int, cycles: int) -> list[int]:
    begins = []
    for _ in range(members):
        element = int(free.argmin())
        begins.append(int(free[element]))
        free[element] += cycles
    return begins


@given(programs(), st.integers(1, 6), st.sampled_from([None, 2, 5, 24]))
@examples(30)
def test_families_are_placed_as_if_task_by_task(program: Program, pes: int, pieces: int | None) -> None:
    """Where nothing streams: the most urgent of what can begin, where elements get free."""
    graph = OutlinedModel(program, registered_expansions()).outline(()).graph
    flow = flow_of(graph, ExtractionOptions(Volumes.EXACT, Granularity(pieces=pieces)))
    families = [Family.of(flow, number, pes).through_memory() for number in range(len(flow.families))]

    placing = Placing(flow.order, families, pes)
    placing.run()

    assert placing.times.end == _ends_task_by_task(families, placing.rank, pes)


@given(
    programs(),
    st.integers(1, 20),
    st.sampled_from([None, 2, 5, 24]),
    st.sampled_from([1, 16, 100, 800, 10**6]),
    st.booleans(),
)
@examples(100)
def test_no_less_is_moved_than_is_known_without_streams_and_slices(
    program: Program, pes: int, pieces: int | None, sram_bytes: int, is_streamed: bool
) -> None:
    graph = OutlinedModel(program, registered_expansions()).outline(()).graph
    flow = flow_of(graph, ExtractionOptions(Volumes.EXACT, Granularity(pieces=pieces)))
    memory = Memory(sram_bytes, 1.0)

    least = least_traffic(flow.families, uses_of(flow.families, graph.arrays), pes, memory)

    assert least <= traffic(flow, pes, memory, is_streamed=is_streamed)


def _ends_task_by_task(families: list[Family], rank: list[int], pes: int) -> list[int]:
    left = [_cycles(each) for each in families]
    free, end, ended = [0] * pes, [0] * len(families), [False] * len(families)
    while not all(ended):
        ready = {
            number: max((end[other.number] for other in each.producers), default=0)
            for number, each in enumerate(families)
            if left[number] and all(ended[other.number] for other in each.producers)
        }
        now = max(min(free), min(ready.values()))
        number = min((each for each in ready if ready[each] <= now), key=rank.__getitem__)
        element = free.index(min(free))
        free[element] = now + left[number].pop(0)
        end[number] = max(end[number], free[element])
        ended[number] = not left[number]
    return end


def _cycles(family: Family) -> list[int]:
    """Return the cycles of each task of a family, the longer ones first."""
    tasks = family.tasks
    shorter = 0 if tasks.is_even else tasks.members // tasks.row
    return [max(tasks.whole, 1)] * (tasks.members - shorter) + [max(tasks.last, 1)] * shorter

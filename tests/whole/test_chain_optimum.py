"""Chains against all assignments of their tasks to processing elements, element by element."""

import statistics
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler import ScheduleOptions, Timing, lower_bound_cycles, schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.unit.scheduler.reference_schedules import reference_schedules
from tests.unit.scheduler.streams import stream_graph


def _writes(reads: int, writes: int, arrivals: Int64 | None, free: int) -> Int64:
    """When a task writes its elements, if its reads wait for nothing but their arrivals and its element to be free.

    Write j needs ``ceil(j I / O)`` reads. Every access has its cycle in a program that never waits; a late arrival
    makes all that follows as late as itself.
    """
    read, write = np.arange(reads), np.arange(1, writes + 1)
    needed = -(-write * reads // writes)
    late = np.full(reads, free)
    if arrivals is not None:
        late = np.maximum(late, np.maximum.accumulate(arrivals - np.maximum(read, read * writes // reads)))
    written: Int64 = np.maximum(write, needed) + late[needed - 1]
    return written


def _assignments(tasks: int, pes: int, taken: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All ways to share out tasks, up to the names of the processing elements."""
    if len(taken) == tasks:
        yield taken
        return
    for element in range(min(max(taken, default=-1) + 2, pes)):
        yield from _assignments(tasks, pes, (*taken, element))


def _cycles(volumes: list[int], assignment: tuple[int, ...]) -> int:
    """Length of a chain's schedule with FIFOs that are never full.

    Each task needs the last element of the one before it, so those of one processing element run in the order of the
    chain, and each as early as it can.
    """
    free = [0] * (max(assignment) + 1)
    arrivals = None
    for (reads, writes), element in zip(pairwise(volumes), assignment, strict=True):
        arrivals = _writes(reads, writes, arrivals, free[element])
        free[element] = int(arrivals[-1])
    return max(free)


def _shortest(volumes: list[int], pes: int) -> int:
    return min(_cycles(volumes, assignment) for assignment in _assignments(len(volumes) - 1, pes))


def _in_turn(volumes: list[int], pes: int) -> int:
    """Length if the tasks take the processing elements in turn."""
    return _cycles(volumes, tuple(number % pes for number in range(len(volumes) - 1)))


def _chain(volumes: list[int]) -> CanonicalDag:
    names = ["in", *(f"x{number}" for number in range(len(volumes) - 1)), "out"]
    return stream_graph([(*ends, volume) for ends, volume in zip(pairwise(names), volumes, strict=True)])


def _recorded(pes: int) -> dict[str, CanonicalDag]:
    """The recorded chains, by name."""
    return {
        each.name: each.dag
        for each in reference_schedules()
        if each.dag.name == "chain" and each.pes == pes and each.partition == "sb-lts"
    }


@pytest.mark.parametrize(("pes", "median"), [(2, 240), (4, 157)])
def test_no_assignment_of_a_recorded_chain_is_shorter_than_best(pes: int, median: int) -> None:
    shortest = {name: _shortest(dag.edge_volume.tolist(), pes) for name, dag in _recorded(pes).items()}

    found = {name: schedule(dag, ScheduleOptions(pes, "best")).makespan_cycles for name, dag in _recorded(pes).items()}

    assert len(found) == 6
    assert statistics.median(found.values()) == statistics.median(shortest.values()) == median
    assert statistics.median(lower_bound_cycles(dag, pes) for dag in _recorded(pes).values()) == median
    assert found == shortest


@pytest.mark.parametrize("pes", range(1, 11))
def test_the_bound_of_an_elementwise_chain_is_its_optimum(pes: int) -> None:
    volumes = [100] * 10

    assert lower_bound_cycles(_chain(volumes), pes) == _in_turn(volumes, pes)


volumes = st.lists(st.integers(1, 40), min_size=2, max_size=7)


@examples(60)
@given(volumes, st.integers(1, 4))
def test_no_assignment_of_a_chain_is_shorter_than_turns(volumes: list[int], pes: int) -> None:
    assert _in_turn(volumes, pes) == _shortest(volumes, pes)


@examples(50)
@given(volumes, st.integers(1, 4), st.sampled_from(["sb-lts", "sb-rlx", "work-ordered"]), st.booleans())
def test_no_schedule_of_a_chain_is_shorter_than_turns(
    volumes: list[int], pes: int, partition: str, barrier: bool
) -> None:
    dag = _chain(volumes)

    found = schedule(dag, ScheduleOptions(pes, partition, barrier=barrier, timing=Timing.EXACT)).makespan_cycles

    assert lower_bound_cycles(dag, pes) <= _in_turn(volumes, pes) <= found


@pytest.mark.parametrize(
    ("volumes", "pes"),
    [
        ([16, 16, 48, 16, 32], 3),
        ([38, 15, 59, 36, 14], 2),
        ([49, 27, 13, 63, 4, 50], 3),
        ([27, 55, 8, 62, 47, 26, 53], 3),
        ([256, 128, 512, 1024, 256, 256], 2),
        ([484, 74, 635, 15, 158], 2),
        ([621, 695, 24, 851, 645, 42, 772], 4),
    ],
)
def test_best_takes_no_longer_than_any_assignment_of_a_chain(volumes: list[int], pes: int) -> None:
    dag = _chain(volumes)
    found = schedule(dag, ScheduleOptions(pes, "best"))

    assert simulate(dag, replay_of(found)).makespan_cycles == _shortest(volumes, pes)

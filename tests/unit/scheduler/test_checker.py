"""The checker accepts every schedule of the scheduler and rejects damaged ones."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler import (
    Schedule,
    ScheduleOptions,
    Timing,
    check,
    check_non_streaming,
    schedule,
    schedule_non_streaming,
)
from tests.examples import examples
from tests.strategies import canonical_dags

PARTITIONS = ("sb-lts", "sb-rlx", "work-ordered")


@examples(100)
@given(canonical_dags(), st.integers(1, 6), st.sampled_from(PARTITIONS), st.booleans())
def test_every_schedule_is_accepted(dag: CanonicalDag, pes: int, partition: str, demote: bool) -> None:
    result = schedule(dag, ScheduleOptions(pes, partition, demote))

    check(dag, result)
    longest = int(dag.work.max()) if dag.nodes_count else 0
    assert result.makespan_cycles >= max(longest, -(-int(dag.work.sum()) // pes))


@examples(100)
@given(canonical_dags(), st.integers(1, 6))
def test_every_non_streaming_schedule_is_accepted(dag: CanonicalDag, pes: int) -> None:
    check_non_streaming(dag, schedule_non_streaming(dag, pes))


def _chains(seed: int) -> CanonicalDag:
    """Return three chains of three to five tasks with random volumes."""
    choice = random.Random(seed)
    builder = DagBuilder("chains")
    for chain in range(3):
        volume = choice.randrange(4, 40)
        before = builder.add_memory(builder.add_scope(f"in{chain}"))
        for step in range(choice.randrange(3, 6)):
            task = builder.add_task(builder.add_scope(f"chain{chain}.step{step}"))
            builder.add_edge(before, task, volume)
            before, volume = task, choice.choice([volume, 2 * volume, max(volume // 2, 2)])
        builder.add_edge(before, builder.add_memory(builder.add_scope(f"out{chain}")), volume)
    return builder.finish()


def _overlapping(result: Schedule, choice: random.Random) -> Schedule:
    first = choice.choice([node for node in range(len(result.pe)) if result.pe[node] >= 0])
    together = np.flatnonzero(
        (result.block == result.block[first]) & (result.pe >= 0) & (result.pe != result.pe[first])
    )
    pe = result.pe.copy()
    pe[choice.choice(together.tolist())] = pe[first]
    return replace(result, pe=pe)


def _hurried(dag: CanonicalDag, result: Schedule, choice: random.Random) -> Schedule:
    tasks = dag.is_computational
    inner = np.flatnonzero(tasks[dag.edge_source] & tasks[dag.edge_target])
    edge = choice.choice(inner.tolist())
    node = int(dag.edge_target[edge])
    start = result.start.copy()
    start[node] = result.first_out[dag.edge_source[edge]] - 1
    return replace(result, start=start)


def _crowded(result: Schedule) -> Schedule:
    """Merge the first two blocks."""
    return replace(result, block=np.maximum(result.block - 1, 0))


@pytest.mark.parametrize("seed", range(17))
def test_overlap_on_an_element_is_rejected(seed: int) -> None:
    dag = _chains(seed)
    result = schedule(dag, ScheduleOptions(4))
    check(dag, result)

    with pytest.raises(VerificationError, match=r"nodes '.+' and '.+': overlap on element \d"):
        check(dag, _overlapping(result, random.Random(seed)))


@pytest.mark.parametrize("seed", range(17))
def test_broken_precedence_is_rejected(seed: int) -> None:
    dag = _chains(seed)
    result = schedule(dag, ScheduleOptions(15))
    check(dag, result)

    with pytest.raises(VerificationError, match="starts before its input"):
        check(dag, _hurried(dag, result, random.Random(seed)))


@pytest.mark.parametrize("seed", range(17))
def test_block_over_the_number_of_elements_is_rejected(seed: int) -> None:
    dag = _chains(seed)
    result = schedule(dag, ScheduleOptions(3))
    check(dag, result)

    with pytest.raises(VerificationError, match="in a block over 3 tasks"):
        check(dag, _crowded(result))


def _shifted(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], node: int, by: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    shifted = values.copy()
    shifted[node] += by
    return shifted


def test_each_rule_of_one_task_is_checked() -> None:
    builder = DagBuilder("reduction")
    names = ("in", "reduce", "scale", "out")
    scopes = [builder.add_scope(name) for name in names]
    source, reduce, scale, sink = (
        builder.add_memory(scopes[0]),
        builder.add_task(scopes[1]),
        builder.add_task(scopes[2]),
        builder.add_memory(scopes[3]),
    )
    for left, right, volume in ((source, reduce, 12), (reduce, scale, 3), (scale, sink, 3)):
        builder.add_edge(left, right, volume)
    dag = builder.finish()
    good = schedule(dag, ScheduleOptions(2, timing=Timing.STEADY))
    check(dag, good)

    damaged = {
        "not on one of the 2": replace(good, pe=np.where(good.pe == 1, 2, good.pe).astype(np.int32)),
        "but no task": replace(good, pe=np.where(good.pe < 0, 0, good.pe).astype(np.int32)),
        "runs for less than its work": replace(good, last_out=_shifted(good.last_out, reduce, -1)),
        "before enough inputs": replace(good, first_out=_shifted(good.first_out, reduce, -1)),
        "more than one element per cycle": replace(good, first_out=_shifted(good.first_out, reduce, 7)),
        "not in the order": replace(good, first_out=_shifted(good.first_out, reduce, 20)),
        "found 99 cycles": replace(good, makespan_cycles=99),
        "streamed without room": replace(good, fifo_capacity=np.zeros_like(good.fifo_capacity)),
        "a fifo, but not streamed": replace(good, fifo_capacity=np.ones_like(good.fifo_capacity)),
        "not between two tasks": replace(good, streamed=np.ones_like(good.streamed)),
        "input is in memory": replace(
            good, streamed=np.zeros_like(good.streamed), fifo_capacity=np.zeros_like(good.fifo_capacity)
        ),
        "before its input streams": replace(good, start=_shifted(good.start, scale, -1)),
        "ends before its input stream": replace(good, last_out=_shifted(good.last_out, reduce, 5)),
        "has not 4 nodes": replace(good, pe=good.pe[1:]),
        "has not 3 edges": replace(good, streamed=good.streamed[1:]),
    }
    for rule, broken in damaged.items():
        with pytest.raises(VerificationError, match=rule):
            check(dag, broken)

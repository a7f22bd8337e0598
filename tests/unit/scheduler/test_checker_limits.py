"""Every rule of the checker to the cycle and to the element: what just keeps it is accepted, one less is not."""

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler import NonStreamingSchedule, Schedule, Timing, check, check_non_streaming
from tests.unit.scheduler.streams import stream_graph

Times = dict[str, tuple[int, int, int]]  # start, first out, last out

APART = stream_graph([("in", "a", 4), ("a", "OUT", 4), ("in", "b", 4), ("b", "OUT", 4)])
STREAM = stream_graph([("in", "a", 4), ("a", "b", 4), ("b", "out", 4)])
REDUCTION = stream_graph([("in", "a", 12), ("a", "out", 3)])


def made(
    dag: CanonicalDag,
    times: Times,
    *,
    pe: dict[str, int],
    block: dict[str, int],
    fifo: int = 0,
    barrier: bool = True,
    timing: Timing = Timing.STEADY,
) -> Schedule:
    """A schedule on two elements; what is memory takes no time, at the begin or at the end."""
    names = [dag.node_name(node) for node in range(dag.nodes_count)]
    end = max(last for _, _, last in times.values())
    last_block = max(block.values())
    rows = [times.get(name, (0, 0, 0) if name == "in" else (end, end, end)) for name in names]
    start, first_out, last_out = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    between = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    return Schedule(
        pes=2,
        partition="by hand",
        barrier=barrier,
        timing=timing,
        block=np.array([block.get(name, 0 if name == "in" else last_block) for name in names], dtype=np.int32),
        pe=np.array([pe.get(name, -1) for name in names], dtype=np.int32),
        start=start,
        first_out=first_out,
        last_out=last_out,
        streamed=between & (fifo > 0),
        fifo_capacity=np.where(between, fifo, 0).astype(np.int64),
        makespan_cycles=end,
    )


def rejects(dag: CanonicalDag, schedule: Schedule, rule: str) -> None:
    with pytest.raises(VerificationError, match=rule):
        check(dag, schedule)


def test_a_block_begins_when_the_one_before_has_ended() -> None:
    def after(start: int) -> Schedule:
        times = {"a": (0, 1, 4), "b": (start, start + 1, start + 4)}
        return made(APART, times, pe={"a": 0, "b": 1}, block={"a": 0, "b": 1})

    check(APART, after(4))
    rejects(APART, after(3), "node 'b': starts before the end of an earlier block")


def test_an_element_serves_one_task_after_the_other() -> None:
    def after(start: int) -> Schedule:
        times = {"a": (0, 1, 4), "b": (start, start + 1, start + 4)}
        return made(APART, times, pe={"a": 0, "b": 0}, block={"a": 0, "b": 1}, barrier=False)

    check(APART, after(4))
    rejects(APART, after(3), "nodes 'a' and 'b': overlap on element 0")


def test_tasks_of_a_gang_are_on_different_elements() -> None:
    times = {"a": (0, 1, 4), "b": (4, 5, 8)}

    rejects(
        APART,
        made(APART, times, pe={"a": 0, "b": 0}, block={"a": 0, "b": 0}, barrier=False),
        "node 'b': on an element after a task of the same or a later block",
    )


@pytest.mark.parametrize(
    ("times", "rule"),
    [
        ((0, 4, 12), ""),
        ((0, 4, 11), "runs for less than its work"),
        ((0, 3, 12), "first output before enough inputs"),
        ((0, 10, 12), ""),
        ((0, 11, 12), "emits more than one element per cycle"),
    ],
)
def test_a_task_reads_and_emits_one_element_a_cycle(times: tuple[int, int, int], rule: str) -> None:
    """12 elements in, 3 out: a sum of four each."""
    found = made(REDUCTION, {"a": times}, pe={"a": 0}, block={"a": 0})

    if rule:
        rejects(REDUCTION, found, f"node 'a': {rule}")
    else:
        check(REDUCTION, found)


def test_a_consumer_ends_when_its_producer_has_ended_at_the_earliest() -> None:
    """Late to its last element, the producer emits every second cycle."""

    def together(last: int) -> Schedule:
        times = {"a": (0, 1, 7), "b": (1, 2, last)}
        return made(STREAM, times, pe={"a": 0, "b": 1}, block={"a": 0, "b": 0}, fifo=1)

    check(STREAM, together(8))
    check(STREAM, together(7))
    rejects(STREAM, together(6), "edge 'a' -> 'b': ends before its input stream does")


@pytest.mark.parametrize(("fifo", "rule"), [(4, ""), (3, "through a fifo that does not hold all of it")])
def test_a_relay_holds_all_of_its_stream(fifo: int, rule: str) -> None:
    times = {"a": (0, 1, 4), "b": (1, 2, 5)}
    found = made(STREAM, times, pe={"a": 0, "b": 1}, block={"a": 0, "b": 1}, fifo=fifo, barrier=False)

    if rule:
        rejects(STREAM, found, rule)
    else:
        check(STREAM, found)


@pytest.mark.parametrize(
    ("fifo", "timing", "holds"),
    [(4, Timing.STEADY, True), (3, Timing.STEADY, False), (3, Timing.EXACT, True), (2, Timing.EXACT, False)],
)
def test_a_producer_ends_before_its_consumer_starts_if_the_fifo_holds_all(
    fifo: int, timing: Timing, *, holds: bool
) -> None:
    """Element by element, the consumer holds its first one as well."""
    times = {"a": (0, 1, 4), "b": (6, 7, 10)}
    found = made(STREAM, times, pe={"a": 0, "b": 1}, block={"a": 0, "b": 0}, fifo=fifo, barrier=False, timing=timing)

    if holds:
        check(STREAM, found)
    else:
        rejects(STREAM, found, "edge 'a' -> 'b': ends before its consumer starts, with more than its fifo holds")


def baseline(start: int) -> NonStreamingSchedule:
    """in, a, b, out: b on another element."""
    return NonStreamingSchedule(
        pes=2,
        pe=np.array([-1, 0, 1, -1], dtype=np.int32),
        start=np.array([0, 0, start, start + 4], dtype=np.int64),
        end=np.array([0, 4, start + 4, start + 4], dtype=np.int64),
        makespan_cycles=start + 4,
    )


def test_without_streaming_a_task_waits_for_the_whole_input() -> None:
    check_non_streaming(STREAM, baseline(4))
    with pytest.raises(VerificationError, match="edge 'a' -> 'b': starts before its input is in memory"):
        check_non_streaming(STREAM, baseline(3))


def test_without_streaming_work_and_elements_are_checked_to_the_cycle() -> None:
    short = replace(baseline(4), end=np.array([0, 3, 8, 8], dtype=np.int64))
    same = replace(baseline(4), pe=np.array([-1, 0, 0, -1], dtype=np.int32))
    early = replace(same, start=np.array([0, 0, 3, 8], dtype=np.int64))

    check_non_streaming(STREAM, same)
    with pytest.raises(VerificationError, match="node 'a': runs for less than its work"):
        check_non_streaming(STREAM, short)
    with pytest.raises(VerificationError, match="nodes 'a' and 'b': overlap on element 0"):
        check_non_streaming(STREAM, early)

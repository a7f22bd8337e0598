"""The trace keeps the rules of the trace-event format and says what the schedule says."""

import itertools
import json
from collections import Counter, defaultdict
from typing import TypedDict, cast

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import cholesky, fft, gaussian
from dfcompile.scheduler import Schedule, ScheduleOptions, Timing, schedule
from dfcompile.visualization.trace import CHAIN, PROCESS, schedule_to_trace
from tests.unit.scheduler.streams import stream_graph

REQUIRED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
    "C": {"name", "pid", "ts", "args"},
}
METADATA = {"process_name": str, "thread_name": str, "thread_sort_index": int}

Case = tuple[CanonicalDag, Schedule]


class Event(TypedDict, total=False):
    ph: str
    name: str
    cat: str
    pid: int
    tid: int
    ts: int
    dur: int
    id: int
    bp: str
    args: dict[str, object]


@pytest.fixture(
    params=[(fft(8, 64, 1), 8, None), (gaussian(8, 64, 2), 5, False), (cholesky(4, 64, 3), 64, None)],
    ids=["barriers", "no barriers", "one block"],
    scope="module",
)
def case(request: pytest.FixtureRequest) -> Case:
    dag, pes, barrier = request.param
    return dag, schedule(dag, ScheduleOptions(pes, barrier=barrier))


def events_of(case: Case) -> list[Event]:
    trace = json.loads(schedule_to_trace(*case))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    return cast("list[Event]", trace["traceEvents"])


def row_names(events: list[Event]) -> dict[int, object]:
    named = [event for event in events if event["name"] == "thread_name" and event["pid"] == PROCESS]
    return {event["tid"]: event["args"]["name"] for event in named}


def tasks_of(events: list[Event]) -> list[Event]:
    return [event for event in events if event["ph"] == "X" and event["cat"] not in ("wait", "critical path")]


def test_every_event_has_the_fields_of_its_phase(case: Case) -> None:
    for event in events_of(case):
        assert REQUIRED[event["ph"]] <= set(event)
        assert all(
            isinstance(event[key], int) and event[key] >= 0 for key in ("ts", "dur", "pid", "tid") if key in event
        )
        if event["ph"] == "M":
            ((_, value),) = event["args"].items()
            assert isinstance(value, METADATA[event["name"]])


def test_every_task_is_one_event_in_the_row_of_its_element(case: Case) -> None:
    dag, made = case
    tasks = tasks_of(events_of(case))
    rows = row_names(events_of(case))

    assert {event["name"] for event in tasks} == {
        dag.node_name(node) for node in range(dag.nodes_count) if dag.is_computational[node]
    }
    for event in tasks:
        node = cast("int", event["args"]["node"])
        assert event["name"] == dag.node_name(node)
        assert (event["ts"], event["ts"] + event["dur"]) == (made.start[node], made.last_out[node])
        assert rows[event["tid"]] == f"PE {made.pe[node]}"
        assert event["args"]["block"] == made.block[node]


def test_events_of_a_row_do_not_overlap(case: Case) -> None:
    by_row = defaultdict(list)
    for event in tasks_of(events_of(case)):
        if event["dur"]:
            by_row[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))

    for spans in by_row.values():
        ordered = sorted(spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered))


def test_every_streamed_edge_is_one_flow_between_the_events_of_its_ends(case: Case) -> None:
    dag, made = case
    events = events_of(case)
    spans = {(event["tid"], event["ts"]): event for event in tasks_of(events)}
    ends = {phase: {event["id"]: event for event in events if event["ph"] == phase} for phase in "sf"}
    counts = Counter(event["ph"] for event in events)

    assert set(ends["s"]) == set(ends["f"]) == set(made.streamed.nonzero()[0].tolist())
    assert counts["s"] == counts["f"] == len(ends["s"])
    for edge, sent in ends["s"].items():
        producer, consumer = int(dag.edge_source[edge]), int(dag.edge_target[edge])
        read = ends["f"][edge]
        assert sent["ts"] <= read["ts"]
        assert made.start[producer] <= sent["ts"] < made.last_out[producer]
        assert spans[read["tid"], read["ts"]]["name"] == dag.node_name(consumer)
        assert read["bp"] == "e"


def test_rates_are_exact_and_operators_are_named() -> None:
    dag = gaussian(6, 64, 5)
    events = events_of((dag, schedule(dag, ScheduleOptions(4))))
    arguments = [event["args"] for event in tasks_of(events)]

    assert {found["origin"] for found in arguments} == {"pivot", "update"}
    assert all("." not in str(found["rate"]) for found in arguments)
    assert any("/" in str(found["rate"]) for found in arguments)


def test_trace_is_the_same_twice(case: Case) -> None:
    assert schedule_to_trace(*case) == schedule_to_trace(*case)


def test_waits_lie_within_the_task_that_waits_and_name_the_neighbour(case: Case) -> None:
    dag, _ = case
    events = events_of(case)
    tasks, waits = tasks_of(events), [event for event in events if event.get("cat") == "wait"]
    names = {dag.node_name(node) for node in range(dag.nodes_count)}

    assert waits
    for wait in waits:
        (task,) = (
            task
            for task in tasks
            if task["tid"] == wait["tid"] and task["ts"] <= wait["ts"] and end(wait) <= end(task) and wait["dur"]
        )
        reason, _, neighbour = wait["name"].rpartition(" ")
        assert reason in ("waits for an element from", "waits for a place for an element to")
        assert neighbour in names - {task["name"]}
        assert 2 * cast("int", wait["args"]["waits_cycles"]) > wait["dur"]
    for task in tasks:
        node = cast("int", task["args"]["node"])
        assert task["args"]["waits_cycles"] == task["dur"] - dag.work[node]


def test_counters_hold_what_is_there_in_each_cycle() -> None:
    """Two tasks of 8 elements one after the other, through a FIFO of 1: the second is a cycle later."""
    dag = stream_graph([("a", "b", 8)])
    events = events_of((dag, schedule(dag, ScheduleOptions(2))))
    counted = [(event["name"], event["ts"], event["args"]) for event in events if event["ph"] == "C"]

    assert counted == [
        ("busy processing elements", 0, {"working": 1.0, "waiting": 0}),
        ("busy processing elements", 1, {"working": 2.0, "waiting": 0}),
        ("busy processing elements", 8, {"working": 1.0, "waiting": 0}),
        ("busy processing elements", 9, {"working": 0.0, "waiting": 0.0}),
        ("elements in FIFOs", 0, {"elements": 0}),
    ]


def test_critical_path_is_a_row_from_cycle_0_to_the_makespan(case: Case) -> None:
    stays = [event for event in events_of(case) if event["ph"] == "X" and event["pid"] == CHAIN]

    assert (stays[0]["ts"], end(stays[-1])) == (0, case[1].makespan_cycles)
    assert all(end(before) == after["ts"] for before, after in itertools.pairwise(stays))


def test_steady_times_have_neither_waits_nor_counters() -> None:
    dag = gaussian(8, 64, 2)
    events = events_of((dag, schedule(dag, ScheduleOptions(5, timing=Timing.STEADY))))

    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}
    assert {event["pid"] for event in events} == {PROCESS}


def end(event: Event) -> int:
    return event["ts"] + event["dur"]

"""The trace keeps the rules of the trace-event format and says what the schedule says."""

import itertools
import json
from collections import Counter, defaultdict
from typing import TypedDict, cast

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import cholesky, fft, gaussian
from dfcompile.scheduler import Schedule, ScheduleOptions, schedule
from dfcompile.visualization.trace import schedule_to_trace

REQUIRED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
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
    params=[(fft(16, 64, 1), 8, None), (gaussian(8, 64, 2), 5, False), (cholesky(5, 64, 3), 64, None)],
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
    tasks = [event for event in events_of(case) if event["ph"] == "X"]
    rows = {event["tid"]: event["args"]["name"] for event in events_of(case) if event["name"] == "thread_name"}

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
    for event in events_of(case):
        if event["ph"] == "X":
            by_row[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))

    for spans in by_row.values():
        ordered = sorted(spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered))


def test_every_streamed_edge_is_one_flow_between_the_events_of_its_ends(case: Case) -> None:
    dag, made = case
    events = events_of(case)
    spans = {(event["tid"], event["ts"]): event for event in events if event["ph"] == "X"}
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
    arguments = [event["args"] for event in events if event["ph"] == "X"]

    assert {found["origin"] for found in arguments} == {"pivot", "update"}
    assert all("." not in str(found["rate"]) for found in arguments)
    assert any("/" in str(found["rate"]) for found in arguments)


def test_trace_is_the_same_twice(case: Case) -> None:
    assert schedule_to_trace(*case) == schedule_to_trace(*case)

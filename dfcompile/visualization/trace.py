"""A schedule as columns, for a chart that zooms, and as a trace in the trace-event format, for Perfetto.

One row per processing element, one complete event per task, one flow per streamed edge from the cycle of the first
element sent to the cycle of the first element read. Of a replayed schedule also: inside of tasks when they wait, and
for whom; how many processing elements work or hold a task that waits, and how many elements are in FIFOs, as counters;
and the critical path in a row of its own. A cycle is shown as a microsecond.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, NodeKind
from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.host.printable import json_text
from dfcompile.scheduler import NO_PE, Schedule
from dfcompile.scheduler.activity import Activity, Phase, activity
from dfcompile.scheduler.simulation import NO_EDGE, WaitReason


class Timeline(Struct, frozen=True, eq=False):
    """The tasks of a schedule, in the order of the DAG.

    Attributes:
        pes: number of processing elements.
        makespan_cycles: of the schedule.
        families: pairs of a family's name and the user's operator that it belongs to.
        family: of each task.
        member: number of each task within its family.
        pe: of each task.
        start: cycle in which each task begins.
        end: cycle in which each task ends.
        block: spatial block of each task.
    """

    pes: int
    makespan_cycles: int
    families: tuple[tuple[str, str], ...]
    family: Int64
    member: Int64
    pe: Int64
    start: Int64
    end: Int64
    block: Int64


def timeline_of(dag: CanonicalDag, schedule: Schedule) -> Timeline:
    """Return the tasks that run on processing elements; buffers are none."""
    tasks = np.flatnonzero(schedule.pe != NO_PE)
    scopes, family = np.unique(dag.node_scope[tasks], return_inverse=True)
    columns = (dag.node_member, schedule.pe, schedule.start, schedule.last_out, schedule.block)
    member, pe, start, end, block = (column[tasks].astype(np.int64) for column in columns)
    families = tuple((dag.scopes[number].name, dag.scopes[number].origin) for number in scopes.tolist())
    family = family.astype(np.int64)
    return Timeline(schedule.pes, schedule.makespan_cycles, families, family, member, pe, start, end, block)


PROCESS, CHAIN = 1, 2
FIRST_ROW = 1  # row 0 means "no thread" to some viewers
MOST_STEPS = 2000  # in which a task works or waits evenly, and of a counter


def schedule_to_trace(dag: CanonicalDag, schedule: Schedule) -> str:
    """Return a schedule as a JSON trace, one event per line; times and durations in cycles.

    Raises:
        VerificationError: the times of the schedule are said to be those of its replay, and are not.
    """
    head = {
        "displayTimeUnit": "ms",
        "otherData": {
            "dag": dag.name,
            "pes": schedule.pes,
            "partition": schedule.partition,
            "makespan_cycles": schedule.makespan_cycles,
            "time_unit": "one microsecond stands for one cycle",
        },
    }
    events = ",\n".join(_events(dag, schedule))
    return f'{json_text(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'


def _events(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    happening = activity(dag, schedule, MOST_STEPS)
    yield from _rows(dag, schedule)
    yield from _tasks(dag, schedule, happening)
    yield from _flows(dag, schedule)
    if happening is not None:
        yield from _counters(happening)
        yield from _chain(dag, happening)


def _rows(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    yield json_text({"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": dag.name}})
    for pe in sorted({int(pe) for pe in schedule.pe.tolist() if pe != NO_PE}):
        row = {"ph": "M", "pid": PROCESS, "tid": pe + FIRST_ROW}
        yield json_text({**row, "name": "thread_name", "args": {"name": f"PE {pe}"}})
        yield json_text({**row, "name": "thread_sort_index", "args": {"sort_index": pe}})


def _tasks(dag: CanonicalDag, schedule: Schedule, happening: Activity | None) -> Iterator[str]:
    columns = zip(
        schedule.pe.tolist(), schedule.start.tolist(), schedule.last_out.tolist(), schedule.block.tolist(),
        dag.kind.tolist(), dag.volume_in.tolist(), dag.volume_out.tolist(), dag.node_scope.tolist(), strict=True,
    )  # fmt: skip
    for node, (pe, start, end, block, kind, volume_in, volume_out, number) in enumerate(columns):
        if pe == NO_PE:
            continue
        scope, name = dag.scopes[number], dag.node_name(node)
        args: dict[str, object] = {
            "node": node,
            "block": block,
            "volume_in": volume_in,
            "volume_out": volume_out,
            "rate": str(Fraction(volume_out, volume_in)) if volume_in else None,
            "kernel": None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name,
            "origin": scope.origin,
        }
        if happening is not None:
            args["waits_cycles"] = _waits_cycles(happening.phases[node])
        yield _complete(name, NodeKind(kind).name.lower(), (PROCESS, pe + FIRST_ROW), (start, end), args)
        if happening is not None:
            yield from _waits(dag, node, happening.phases[node], pe)


def _complete(name: str, category: str, row: tuple[int, int], span: tuple[int, int], args: object) -> str:
    """Return the event of what lasts from a cycle to another, in a row of a process."""
    pid, tid = row
    begin, end = span
    event = {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": begin, "dur": end - begin}
    return json_text({**event, "args": args})


def _waits_cycles(phases: Sequence[Phase]) -> int:
    return sum(phase.end - phase.begin - phase.worked_cycles for phase in phases)


def _waits(dag: CanonicalDag, node: int, phases: Sequence[Phase], pe: int) -> Iterator[str]:
    """Yield an event where a task waits more than it works; for one neighbour phases in a row are one event."""
    alike = groupby(phases, key=lambda each: (2 * each.worked_cycles < each.end - each.begin, each.awaited))
    for (mostly_waits, awaited), together in alike:
        if mostly_waits:
            row = list(together)
            name, span = _awaited(dag, node, awaited), (row[0].begin, row[-1].end)
            yield _complete(name, "wait", (PROCESS, pe + FIRST_ROW), span, {"waits_cycles": _waits_cycles(row)})


def _awaited(dag: CanonicalDag, node: int, edge: int) -> str:
    if edge == NO_EDGE:
        return "waits"
    if dag.edge_target[edge] == node:
        return f"waits for {WaitReason.ELEMENT.value} {dag.node_name(int(dag.edge_source[edge]))}"
    return f"waits for {WaitReason.PLACE.value} {dag.node_name(int(dag.edge_target[edge]))}"


def _flows(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    source, target, volume = dag.edge_source.tolist(), dag.edge_target.tolist(), dag.edge_volume.tolist()
    pe, start, first_out = schedule.pe.tolist(), schedule.start.tolist(), schedule.first_out.tolist()
    capacity = schedule.fifo_capacity.tolist()
    for edge in schedule.streamed.nonzero()[0].tolist():
        producer, consumer = source[edge], target[edge]
        flow = {"name": "stream", "cat": "stream", "id": edge, "pid": PROCESS}
        args = {"volume": volume[edge], "fifo_elements": capacity[edge]}
        # Within the producer's event: in the cycle at whose end its first element is there.
        sent = max(first_out[producer] - 1, start[producer])
        yield json_text({**flow, "ph": "s", "tid": pe[producer] + FIRST_ROW, "ts": sent, "args": args})
        yield json_text({**flow, "ph": "f", "bp": "e", "tid": pe[consumer] + FIRST_ROW, "ts": start[consumer]})


def _counters(happening: Activity) -> Iterator[str]:
    """Yield the counters where they change; of processing elements means of a step."""
    steps = zip(happening.working, happening.occupied, strict=True)
    elements = [(round(works, 2), round(max(holds - works, 0), 2)) for works, holds in steps] + [(0.0, 0.0)]
    before = None
    for step, (working, waiting) in enumerate(elements):
        if (working, waiting) != before:
            yield _counter(happening, "busy processing elements", step, {"working": working, "waiting": waiting})
        before = working, waiting
    held = happening.held.tolist()
    for step, words in enumerate(held):
        if not step or words != held[step - 1]:
            yield _counter(happening, "elements in FIFOs", step, {"elements": words})


def _counter(happening: Activity, name: str, step: int, values: Mapping[str, float]) -> str:
    time = min(step * happening.step_cycles, happening.path[0].end if happening.path else 0)
    return json_text({"ph": "C", "name": name, "pid": PROCESS, "tid": 0, "ts": time, "args": dict(values)})


def _chain(dag: CanonicalDag, happening: Activity) -> Iterator[str]:
    """Yield the critical path, as a process with one row."""
    row = {"ph": "M", "pid": CHAIN, "tid": FIRST_ROW}
    yield json_text({**row, "name": "process_name", "args": {"name": "critical path"}})
    yield json_text({**row, "name": "thread_name", "args": {"name": "critical path"}})
    for stay in reversed(happening.path):
        name, span = dag.node_name(stay.node), (stay.begin, stay.end)
        yield _complete(name, "critical path", (CHAIN, FIRST_ROW), span, {"node": stay.node})

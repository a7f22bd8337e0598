"""The trace of a schedule in the trace-event format, for Perfetto and chrome://tracing.

One row per processing element, one complete event per task, one flow per streamed edge from the cycle of the first
element sent to the cycle of the first element read. A cycle is shown as a microsecond.
"""

from collections.abc import Iterator
from fractions import Fraction

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, NodeKind
from dfcompile.host.printable import json_text
from dfcompile.scheduler import NO_PE, Schedule

PROCESS = 1
FIRST_ROW = 1  # row 0 means "no thread" to some viewers


def schedule_to_trace(dag: CanonicalDag, schedule: Schedule) -> str:
    """Return a schedule as a JSON trace, one event per line; times and durations in cycles."""
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
    return f'{_text(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'


def _events(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    yield from _rows(dag, schedule)
    yield from _tasks(dag, schedule)
    yield from _flows(dag, schedule)


def _rows(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    yield _text({"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": dag.name}})
    for pe in sorted({int(pe) for pe in schedule.pe.tolist() if pe != NO_PE}):
        row = {"ph": "M", "pid": PROCESS, "tid": pe + FIRST_ROW}
        yield _text({**row, "name": "thread_name", "args": {"name": f"PE {pe}"}})
        yield _text({**row, "name": "thread_sort_index", "args": {"sort_index": pe}})


def _tasks(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    columns = zip(
        schedule.pe.tolist(), schedule.start.tolist(), schedule.last_out.tolist(), schedule.block.tolist(),
        dag.kind.tolist(), dag.volume_in.tolist(), dag.volume_out.tolist(), dag.node_scope.tolist(), strict=True,
    )  # fmt: skip
    for node, (pe, start, end, block, kind, volume_in, volume_out, number) in enumerate(columns):
        if pe == NO_PE:
            continue
        scope = dag.scopes[number]
        yield _text(
            {
                "ph": "X",
                "name": dag.node_name(node),
                "cat": NodeKind(kind).name.lower(),
                "pid": PROCESS,
                "tid": pe + FIRST_ROW,
                "ts": start,
                "dur": end - start,
                "args": {
                    "node": node,
                    "block": block,
                    "volume_in": volume_in,
                    "volume_out": volume_out,
                    "rate": _rate(volume_in, volume_out),
                    "kernel": None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name,
                    "origin": scope.origin,
                },
            }
        )


def _rate(volume_in: int, volume_out: int) -> str | None:
    return str(Fraction(volume_out, volume_in)) if volume_in else None


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
        yield _text({**flow, "ph": "s", "tid": pe[producer] + FIRST_ROW, "ts": sent, "args": args})
        yield _text({**flow, "ph": "f", "bp": "e", "tid": pe[consumer] + FIRST_ROW, "ts": start[consumer]})


def _text(record: object) -> str:
    return json_text(record)

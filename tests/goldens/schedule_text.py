"""A schedule as a table: a line per task, then a line per stream."""

from collections.abc import Sequence

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler import Schedule, ScheduleOptions, figures, schedule, schedule_non_streaming

COLUMNS = ("block", "pe", "start", "first out", "last out", "task")


def schedule_text(dag: CanonicalDag, pes: int, partition: str) -> str:
    """Return the schedule of a DAG with its figures, its tasks by block and start, and its FIFOs."""
    found = schedule(dag, ScheduleOptions(pes, partition))
    result = figures(dag, found, schedule_non_streaming(dag, pes))
    bounds = f"at least {result.lower_bound_cycles}, without streaming {result.non_streaming_makespan_cycles}"
    moved = f"{result.io_elements} elements to and from memory, {result.spilled_elements} spilled"
    head = [
        f"{dag.name} on {pes} processing elements, {partition}",
        f"makespan {result.makespan_cycles} cycles, {bounds}, work {result.total_work_cycles}",
        f"{moved}, {result.fifo_elements} in FIFOs",
    ]
    return "\n".join([*head, "", *_table(_tasks(dag, found)), "", *_streams(dag, found)]) + "\n"


def _tasks(dag: CanonicalDag, found: Schedule) -> list[tuple[str, ...]]:
    tasks = [node for node in range(dag.nodes_count) if dag.is_computational[node]]
    tasks.sort(key=lambda node: (int(found.block[node]), int(found.start[node]), node))
    columns = (found.block, found.pe, found.start, found.first_out, found.last_out)
    return [(*(str(column[node]) for column in columns), dag.node_name(node)) for node in tasks]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)), row[-1]])
        for row in (COLUMNS, *rows)
    ]


def _streams(dag: CanonicalDag, found: Schedule) -> list[str]:
    ends = zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True)
    return [
        f"{dag.node_name(source)} -> {dag.node_name(target)}: FIFO of {found.fifo_capacity[edge]}"
        for edge, (source, target) in enumerate(ends)
        if found.streamed[edge]
    ]

"""The audit of the part on a replay: its makespan, and what tasks waited."""

import numpy as np

from dfcompile.audit.comparing import expect
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.replay import plain_times
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.report.figures import SimulationSummary
from dfcompile.scheduler.checked_schedule import CheckedSchedule


def audit_simulation(
    where: str, summary: SimulationSummary | None, checked: CheckedSchedule, graph: GraphFigures
) -> None:
    """Compute the figures of a replay anew.

    A replay that ends has the times of an exact schedule, and what a task takes beyond its work it waited.

    Raises:
        VerificationError: naming the figure, or the task whose stalls are not what is left of its time.
    """
    replay = checked.simulation
    if summary is None or replay is None:
        expect(f"{where}: whether there is one", summary is not None, replay is not None)
        return
    ends = replay.end.tolist()
    is_stuck = min(ends, default=0) < 0
    makespan = None if is_stuck else max(ends, default=0)
    expect(f"{where}.makespan_cycles", summary.makespan_cycles, makespan)
    expect(f"{where}.read_stall_cycles", summary.read_stall_cycles, sum(replay.read_stall.tolist()))
    expect(f"{where}.write_stall_cycles", summary.write_stall_cycles, sum(replay.write_stall.tolist()))
    expect(f"{where}.deadlock: whether there is one", bool(summary.deadlock), is_stuck)
    plain = plain_times(graph, checked.schedule)
    if plain is not None:
        ended = len(plain.end) == graph.dag.nodes_count
        expect(
            f"{where}.makespan_cycles", summary.makespan_cycles, max(plain.end.values(), default=0) if ended else None
        )
    if is_stuck:
        return
    if plain is not None:
        expect(f"{where}.read_stall_cycles", summary.read_stall_cycles, plain.read_stall_cycles)
        expect(f"{where}.write_stall_cycles", summary.write_stall_cycles, plain.write_stall_cycles)
    waited = np.zeros(graph.dag.nodes_count, dtype=np.int64)
    np.add.at(waited, graph.dag.edge_target, replay.read_stall)
    np.add.at(waited, graph.dag.edge_source, replay.write_stall)
    left = replay.end - replay.start - graph.work - waited
    if (left[graph.is_task] != 0).any():
        node = int(np.flatnonzero(graph.is_task & (left != 0))[0])
        raise VerificationError(
            f"{where}: node {graph.dag.node_name(node)!r}: found {waited[node]} cycles of stalls "
            f"against {waited[node] + left[node]} beyond its work"
        )
    if checked.schedule.timing is Timing.EXACT:
        expect(f"{where}.makespan_cycles", summary.makespan_cycles, max(checked.schedule.last_out.tolist(), default=0))

"""Work, depth and lower bounds: what no schedule can beat."""

from dataclasses import dataclass

import networkx as nx
import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.exact import int64_column
from dfcompile.scheduler.streaming import streaming_components


@dataclass(frozen=True, slots=True)
class Depths:
    """Figures of a graph alone, in cycles.

    Attributes:
        total_work_cycles: T1, the work of all tasks.
        depth_cycles: T_inf, the longest path of work: no schedule without streaming is shorter.
        streaming_depth_cycles: T_s_inf, what a streaming schedule takes on unlimited elements [dematteis23,
            section 4]: an estimate, not a bound.
    """

    total_work_cycles: int
    depth_cycles: int
    streaming_depth_cycles: int


def depths(dag: CanonicalDag) -> Depths:
    """Compute work and depths; O(nodes + edges)."""
    order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
    return Depths(
        total_work_cycles=sum(dag.work.tolist()),
        depth_cycles=_depth(dag, order),
        streaming_depth_cycles=_streaming_depth(dag, order),
    )


def lower_bound_cycles(dag: CanonicalDag, pes: int) -> int:
    """Return cycles that every streaming schedule on P processing elements takes at least.

    A task occupies its element for its work ``W = max(I, O)``. It cannot start before every predecessor has sent
    a first element, after ``ceil(I / O)`` of its own inputs (or, past a buffer, has ended); and after a
    predecessor's last element it still has to send one of its own. That gives each task an earliest start and an
    earliest end. The bound is the largest of: the earliest end of any task; for every cycle t, t plus the work of
    the tasks that cannot start before t, shared by P; and the same from the end backwards.
    """
    order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
    head, end = _earliest(dag, order)
    tail = _latest(dag, order)
    longest = max((e + t for e, t in zip(end, tail, strict=True)), default=0)
    return max(longest, _loaded(dag, head, pes), _loaded(dag, tail, pes))


def _loaded(dag: CanonicalDag, offset: list[int], pes: int) -> int:
    """Return the largest ``offset + ceil(work of tasks with at least that offset / P)``."""
    tasks = np.flatnonzero(dag.is_computational).tolist()
    best = load = 0
    work = dag.work.tolist()
    for node in sorted(tasks, key=lambda node: -offset[node]):
        load += work[node]
        best = max(best, offset[node] - (-load // pes))
    return best


def _earliest(dag: CanonicalDag, order: list[int]) -> tuple[list[int], list[int]]:
    """Return the earliest start and the earliest end of each node."""
    parents, in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    first_offset = _awaited_inputs(dag).tolist()
    start, first, end = [0] * dag.nodes_count, [0] * dag.nodes_count, [0] * dag.nodes_count
    for node in order:
        above = parents[in_start[node] : in_start[node + 1]]
        if not task[node]:
            start[node] = first[node] = end[node] = max((end[parent] for parent in above), default=0)
            continue
        start[node] = max((first[parent] for parent in above), default=0)
        first[node] = start[node] + first_offset[node]
        # Only a task must pass a last element on: what comes from memory may have ended long before.
        streams = (end[parent] + 1 for parent in above if task[parent])
        end[node] = max(start[node] + work[node], max(streams, default=0))
    return start, end


def _latest(dag: CanonicalDag, order: list[int]) -> list[int]:
    """Return for each node the cycles between its end and the end of any schedule, at least."""
    targets, out_start = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    tail = [0] * dag.nodes_count
    for node in reversed(order):
        for target in targets[out_start[node] : out_start[node + 1]]:
            if not task[target]:
                after = tail[target]
            elif task[node]:
                after = tail[target] + 1
            else:
                after = tail[target] + work[target]
            tail[node] = max(tail[node], after)
    return tail


def _awaited_inputs(dag: CanonicalDag) -> Int64:
    awaited: Int64 = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    return awaited


def _depth(dag: CanonicalDag, order: list[int]) -> int:
    parents, in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    work = dag.work.tolist()
    end = [0] * dag.nodes_count
    for node in order:
        end[node] = work[node] + max(
            (end[parent] for parent in parents[in_start[node] : in_start[node + 1]]), default=0
        )
    return max(end, default=0)


def _streaming_depth(dag: CanonicalDag, order: list[int]) -> int:
    """Return the longest path over streaming components; buffers separate them.

    A component of levels L and largest volume V takes ``L + V - 1`` cycles, where each node adds ``max(R, 1)`` levels
    (rounded up). Components that feed each other through buffers run one after the other.
    """
    streamed: Bool = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    component = streaming_components(dag, streamed)
    cycles = _component_depths(dag, order, component, streamed)
    memory = np.flatnonzero(~streamed)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(np.unique(component).tolist())
    sources, targets = component[dag.edge_source[memory]], component[dag.edge_target[memory]]
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    whole = nx.condensation(graph)
    end: dict[int, int] = {}
    for group in nx.topological_sort(whole):
        members = whole.nodes[group]["members"]
        before = max((end[other] for other in whole.predecessors(group)), default=0)
        end[group] = before + sum(cycles[member] for member in members)
    return max(end.values(), default=0)


def _component_depths(dag: CanonicalDag, order: list[int], component: Int64, streamed: Bool) -> list[int]:
    """Return the depth of each component at its smallest node, 0 for buffers and pseudo nodes, shape [nodes]."""
    parents, in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    streams = streamed[dag.in_edges].tolist()
    rate = np.maximum(-(-dag.volume_out // np.maximum(dag.volume_in, 1)), 1)
    rate = np.where(dag.volume_in == 0, 1, rate).tolist()
    level = [0] * dag.nodes_count
    for node in order:
        above = (level[parents[edge]] for edge in range(in_start[node], in_start[node + 1]) if streams[edge])
        highest = max(above, default=0)
        level[node] = highest + rate[node] if highest else 1
    levels, largest = np.zeros(dag.nodes_count, dtype=np.int64), np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(levels, component, int64_column(level))
    np.maximum.at(largest, component, dag.work)
    depth: list[int] = np.where(largest > 0, levels + largest - 1, 0).tolist()
    return depth

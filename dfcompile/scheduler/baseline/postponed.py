"""What depends on no input of the model is done late, so that what it makes waits for less time in memory."""

from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, TensorRole, topological_order
from dfcompile.canonical_dag.analysis.longest_path import longest_paths
from dfcompile.canonical_dag.dag import Bool
from dfcompile.records import replace
from dfcompile.scheduler.baseline.gaps import GapIndex
from dfcompile.scheduler.schedules import NonStreamingSchedule


def postponed(dag: CanonicalDag, found: NonStreamingSchedule) -> NonStreamingSchedule:
    """Return a schedule in which tasks that depend on no input run late, and all others stay where they are.

    Such tasks write the border of a padded array, or transform filters. Each is put into the latest idle gap before
    the tasks that read from it, the last one first. If one of them fits nowhere, or where they were others could begin
    so much earlier that the makespan is another, the schedule stays as it is.

    Args:
        dag: the graph.
        found: a schedule of it.
    """
    is_moved = _depends_on_no_input(dag)
    tasks = is_moved & dag.is_computational & (dag.work > 0)
    if not tasks.any():
        return found
    makespan, start, pe = found.makespan_cycles, found.start.tolist(), found.pe.tolist()
    gaps = _gaps(found, dag.is_computational & (dag.work > 0) & ~tasks)
    work, targets, first = dag.work.tolist(), dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    waits, placed = _readers_start(dag, found), is_moved.tolist()
    for node in topological_order(dag)[::-1].tolist():
        if not placed[node]:
            continue
        readers = targets[first[node] : first[node + 1]]
        latest = min([start[each] if placed[each] else waits[each] for each in readers], default=makespan)
        start[node] = latest - work[node]
        if not tasks[node]:
            continue
        ready = makespan - latest  # all cycles are counted from the end: what is latest there comes first
        gap = gaps.take(ready, work[node], makespan - work[node])
        if gap is None:
            return found
        begin, end, pe[node] = gap
        ready = max(begin, ready)
        gaps.add(begin, ready, pe[node])
        gaps.add(ready + work[node], end, pe[node])
        start[node] = makespan - ready - work[node]
    begun, element = np.array(start, dtype=np.int64), np.array(pe, dtype=np.int32)
    ended = np.where(is_moved, begun + dag.work, found.end)
    into = dag.is_buffer[dag.edge_target] & is_moved[dag.edge_source]
    np.maximum.at(ended, dag.edge_target[into], ended[dag.edge_source[into]])
    begun = np.where(dag.is_buffer, ended, begun)
    after = replace(found, pe=element, start=begun, end=ended)
    return after if _earliest_end(dag, after) == makespan else found


def _earliest_end(dag: CanonicalDag, found: NonStreamingSchedule) -> int:
    """Return when all have ended if each task begins once what it reads is there and its element is free."""
    work = np.where(dag.is_computational, dag.work, 0)
    tasks = np.flatnonzero(work)
    tasks = tasks[np.lexsort((found.start[tasks], found.pe[tasks]))]
    follows = found.pe[tasks[1:]] == found.pe[tasks[:-1]]
    source = np.concatenate([dag.edge_source, tasks[:-1][follows]])
    target = np.concatenate([dag.edge_target, tasks[1:][follows]])
    return int(longest_paths(source, target, work).max())


def _depends_on_no_input(dag: CanonicalDag) -> Bool:
    """Return of which nodes all that leads to them is made from constants alone, shape [nodes]."""
    constants = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    of_constant = np.array([scope.origin in constants for scope in dag.scopes], dtype=np.bool_)
    is_given = (np.diff(dag.in_start) == 0) & ~dag.is_computational & ~of_constant[dag.node_scope]
    reached = longest_paths(dag.edge_source, dag.edge_target, is_given.astype(np.int64))
    return np.asarray((reached == 0) & (np.diff(dag.in_start) + dag.is_computational > 0))


def _readers_start(dag: CanonicalDag, found: NonStreamingSchedule) -> list[int]:
    """Return when each node is needed: a task when it starts, a buffer when the first of its readers does."""
    needed = np.where(dag.is_computational, found.start, found.makespan_cycles)
    read = dag.is_buffer[dag.edge_source] & dag.is_computational[dag.edge_target]
    np.minimum.at(needed, dag.edge_source[read], found.start[dag.edge_target[read]])
    return [int(cycle) for cycle in needed]


def _gaps(found: NonStreamingSchedule, stays: Bool) -> GapIndex:
    """Return the idle cycles of all elements but for some tasks, counted from the end."""
    gaps, makespan = GapIndex(), found.makespan_cycles
    tasks = np.flatnonzero(stays)
    tasks = tasks[np.lexsort((found.start[tasks], found.pe[tasks]))]
    elements = int(found.pe.max()) + 1
    borders = np.searchsorted(found.pe[tasks], np.arange(elements + 1)).tolist()
    begin, end = found.start[tasks].tolist(), found.end[tasks].tolist()
    for pe, (low, high) in enumerate(pairwise(borders)):
        behind = 0
        for at in range(low, high):
            gaps.add(makespan - begin[at], makespan - behind, pe)
            behind = end[at]
        gaps.add(0, makespan - behind, pe)
    return gaps

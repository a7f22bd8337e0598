"""Access times of a stretch by relaxation: whole programs at a time, until no access is too early."""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch

_VISITS_PER_NODE = 6
_ACCESSES_PER_VISIT = 60  # stepping through so many accesses takes as long as one visit


def relax(unit: StreamingUnit, stretch: Stretch) -> bool:
    """Find the earliest times that respect every program and every FIFO; return whether they were found.

    A read waits for its write, a write for the read that frees its place. Beginning with no waits at all, tasks are
    visited in topological order, then back, and so on, and delay their accesses as far as their neighbours demand;
    a task is visited again only if an access of it is too early. The earliest times are the least solution, so the
    order of the visits does not matter. In a deadlock there is none: the visits are limited.

    Args:
        unit: the tasks; none of them may wait for the end of another.
        stretch: with ``clock`` set; ``puts`` and ``gets`` are filled.
    """
    for edge in range(len(unit.edges)):
        stretch.reads(edge)[:] = LONG_AGO
    nodes = range(len(unit.nodes))
    dirty = [True for _ in nodes]
    visits = _VISITS_PER_NODE * len(nodes) + sum(program.length for program in stretch.programs) // _ACCESSES_PER_VISIT
    forward = True
    while any(dirty):
        for node in nodes if forward else reversed(nodes):
            if dirty[node]:
                dirty[node] = False
                _visit(unit, stretch, node)
                _mark(unit, stretch, node, dirty)
                visits -= 1
        if visits < 0:
            return False
        forward = not forward
    return True


def _visit(unit: StreamingUnit, stretch: Stretch, node: int) -> None:
    program = stretch.programs[node]
    delay = np.full(program.length, LONG_AGO, dtype=np.int64)
    for edge, position in zip(unit.inputs[node], program.gets, strict=True):
        delay[position] = stretch.puts[edge] - program.get_waits
    for edge, position in zip(unit.outputs[node], program.puts, strict=True):
        if stretch.past[edge]:
            delay[position] = stretch.frees(edge) - program.put_waits
    delay[0] = max(int(delay[0]), stretch.clock[node])
    np.maximum.accumulate(delay, out=delay)
    for edge, position in zip(unit.inputs[node], program.gets, strict=True):
        np.add(delay[position], program.get_waits, out=stretch.reads(edge))
    for edge, position in zip(unit.outputs[node], program.puts, strict=True):
        np.add(delay[position], program.put_waits, out=stretch.puts[edge])


def _mark(unit: StreamingUnit, stretch: Stretch, node: int, dirty: list[bool]) -> None:
    for edge in unit.inputs[node]:
        producer = unit.source[edge]
        if stretch.past[edge] and not dirty[producer]:
            dirty[producer] = _any_later(stretch.frees(edge), stretch.puts[edge])
    for edge in unit.outputs[node]:
        consumer = unit.target[edge]
        if not dirty[consumer]:
            dirty[consumer] = _any_later(stretch.puts[edge], stretch.reads(edge))


def _any_later(awaited: Int64, access: Int64) -> bool:
    return bool((awaited > access).any())

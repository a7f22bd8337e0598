"""How long a task waits at each of its FIFOs."""

from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import StreamingUnit, Stretch


def stalls(unit: StreamingUnit, stretch: Stretch, node: int, end: int, *, starts: bool) -> dict[int, int]:
    """Return by how much the accesses to each FIFO of a task delay it in a stretch, by edge.

    Args:
        unit: the tasks.
        stretch: with all times.
        node: the task.
        end: time at which it ends the stretch.
        starts: whether the first reads of the stretch are its first: before them it has not started.
    """
    sequence, clock = stretch.sequences[node], stretch.clock[node]
    reads = [stretch.reads(edge) for edge in unit.inputs[node]]
    puts = [stretch.puts(edge) for edge in unit.outputs[node]]
    read_stalls, put_stalls = _beyond_the_first(reads), _beyond_the_first(puts)
    # All stalls together are known; those at the first places of the rows are what is left.
    rest = end - clock - sequence.cycles - sum(read_stalls) - sum(put_stalls)
    if sequence.writes and not sequence.reads:
        put_stalls[0] = rest
    elif sequence.reads:
        at_first_put = _at_first_put(unit, stretch, node, reads, puts) if sequence.writes else 0
        read_stalls[0] = rest - at_first_put
        if sequence.writes:
            put_stalls[0] = at_first_put
    if starts and sequence.reads:
        before = clock
        for place, times in enumerate(reads):
            first = int(times[0]) - int(sequence.get_waits[0])
            read_stalls[place] -= first - before
            before = first
    return dict(zip((*unit.inputs[node], *unit.outputs[node]), (*read_stalls, *put_stalls), strict=True))


def _beyond_the_first(row: list[Int64]) -> list[int]:
    """Return how much later each column of a row is than the one before it, in sum; 0 for the first."""
    return [0 for _ in row[:1]] + [int((later - before).sum()) for before, later in pairwise(row)]


def _at_first_put(unit: StreamingUnit, stretch: Stretch, node: int, reads: list[Int64], puts: list[Int64]) -> int:
    """Return how much writes to the first output delay a task beyond the access before each of them."""
    if not any(stretch.past[edge] for edge in unit.outputs[node]):
        return 0
    sequence, clock = stretch.sequences[node], stretch.clock[node]
    read_before = np.concatenate([[clock], reads[-1] - sequence.get_waits])
    put_before = np.concatenate([[clock], puts[-1][:-1] - sequence.put_waits[:-1]])
    before = np.maximum(put_before, read_before[sequence.gets_before])
    return int((puts[0] - sequence.put_waits - before).sum())

"""The program of a task: in which order, and how many waits apart, it accesses its FIFOs."""

from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The FIFO accesses of one task over a stretch of its reads and writes.

    Access p may take place ``waits`` cycles after the stretch began, or later: each access waits for the one before.

    Attributes:
        length: number of accesses.
        cycles: waits over the whole stretch, ``max(reads, writes)``.
        gets: positions of the reads of each streamed input, shape [inputs][reads].
        puts: positions of the writes of each streamed output, shape [outputs][writes].
        get_waits: waits before read i, shape [reads].
        put_waits: waits before write j, shape [writes].
    """

    length: int
    cycles: int
    gets: tuple[Int64, ...]
    puts: tuple[Int64, ...]
    get_waits: Int64
    put_waits: Int64


def task_program(reads: int, writes: int, inputs: int, outputs: int) -> Program:
    """Return the program of a task that reads and writes as evenly as whole elements allow.

    Write j (from 1) needs ``ceil(j * reads / writes)`` reads. In each cycle the task first writes one element to all
    outputs in turn if one is due, then, unless more are due, reads one element from all inputs in turn.

    Args:
        reads: elements read from each input, at least 1.
        writes: elements written to each output, at least 1.
        inputs: number of streamed inputs.
        outputs: number of streamed outputs.
    """
    read = np.arange(reads, dtype=np.int64)
    write = np.arange(1, writes + 1, dtype=np.int64)
    written_before = read * writes // reads
    read_before = (write * reads + writes - 1) // writes
    first_get = read * inputs + written_before * outputs
    first_put = read_before * inputs + (write - 1) * outputs
    return Program(
        length=reads * inputs + writes * outputs,
        cycles=max(reads, writes),
        gets=tuple(first_get + place for place in range(inputs)),
        puts=tuple(first_put + place for place in range(outputs)),
        get_waits=written_before if writes >= reads else read,
        put_waits=write if writes >= reads else read_before,
    )

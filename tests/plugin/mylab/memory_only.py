"""A pass: no array is streamed, each one goes through memory."""

from dataclasses import replace

import dace

from dfcompile.frontend import Level, Program
from dfcompile.lowering import lowering_pass


@lowering_pass("memory-only", level=Level.CANONICAL, source="mylab24")
def memory_only(program: Program) -> Program:
    """Place every intermediate array in memory, as on a machine without streams."""
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    streamed = [array for array in sdfg.arrays.values() if array.storage == dace.StorageType.Default]
    for array in streamed:
        array.storage = dace.StorageType.CPU_Heap
    return replace(program, sdfg=sdfg) if streamed else program

"""A pass of programs: large arrays are not streamed, they go through memory."""

from dfcompile.frontend import Level, Program
from dfcompile.lowering import ProgramRewriter, lowering_pass


@lowering_pass("memory-only", level=Level.CANONICAL, source="mylab24")
def memory_only(program: Program, *, above: int = 0) -> Program:
    """Place every intermediate array of more than ``above`` elements in memory, as on a machine without streams."""
    graph = ProgramRewriter(program)
    for tensor in graph.intermediates():
        if tensor.elements > above:
            graph.place_in_memory(tensor)
    return graph.finish()

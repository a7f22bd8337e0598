"""The pass drop-dead: operators whose results nobody uses."""

from dfcompile.frontend import Level, Program
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.rewriter import ProgramRewriter


@lowering_pass("drop-dead", level=Level.CANONICAL, source="own")
def drop_dead(program: Program) -> Program:
    """Remove operators and views whose results nobody uses, and what only they used."""
    graph = ProgramRewriter(program)
    for op in reversed(graph.operators()):
        if not any(graph.is_used(tensor) for tensor in op.results()):
            graph.remove(op)
    graph.remove_unused_views()
    return graph.finish()

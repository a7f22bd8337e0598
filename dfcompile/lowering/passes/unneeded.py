"""The passes drop-dead and common-subexpressions: what nobody uses goes, what is computed twice is computed once."""

import hashlib
import json
from collections.abc import Hashable

import numpy as np

from dfcompile.frontend import Level, Program
from dfcompile.lowering import Operator, Tensor, lowering_pass
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


@lowering_pass("common-subexpressions", level=Level.CANONICAL, source="own")
def common_subexpressions(program: Program) -> Program:
    """Keep one of several operators that compute the same of the same operands; equal parameters count as one.

    Operands are compared after the merges before them, so whole branches that are equal become one. A result that is an
    output of the model, is seen through a view or was placed in memory stays.
    """
    graph = ProgramRewriter(program)
    known: dict[Hashable, Operator] = {}
    same: dict[str, str] = {}  # tensors that vanished or are parameters -> what stands for them
    for op in graph.operators():
        operands = tuple(None if tensor is None else _identity(graph, tensor, same) for tensor in op.inputs)
        key = (op.op_type, json.dumps(dict(op.attributes), sort_keys=True, default=str), operands)
        first = known.setdefault(key, op)
        if first is op or not all(graph.is_internal(tensor) for tensor in op.results()):
            continue
        pairs = list(zip(first.outputs, op.outputs, strict=False))
        if any(old is not None and new is None for new, old in pairs):
            continue
        for new, old in pairs:
            if new is not None and old is not None:
                graph.rewire(old, new)
                same[old.name] = new.name
        graph.remove(op)
    return graph.finish()


def _identity(graph: ProgramRewriter, tensor: Tensor, same: dict[str, str]) -> str:
    """Return what stands for a tensor: of a parameter its content, of a view what it shows, and its shape."""
    viewed = graph.viewed(tensor)
    if viewed is not None:
        return f"{tensor} of {_identity(graph, viewed, same)}"
    if tensor.value is not None and tensor.name not in same:
        content = hashlib.sha256(np.ascontiguousarray(tensor.value).tobytes()).hexdigest()
        same[tensor.name] = f"{tensor} {content}"
    return same.get(tensor.name, tensor.name)

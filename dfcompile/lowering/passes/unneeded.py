"""Passes that remove operators: those whose results are unused, and those that repeat a computation."""

import hashlib
import json
from collections.abc import Hashable

import numpy as np

from dfcompile.frontend import Level, Program
from dfcompile.lowering import Operator, Tensor, lowering_pass
from dfcompile.lowering.rewriter import ProgramRewriter


@lowering_pass("drop-dead", level=Level.CANONICAL, source="own")
def drop_dead(program: Program) -> Program:
    """Remove operators and views whose results are unused, then those that only they used."""
    graph = ProgramRewriter(program)
    for op in reversed(graph.operators()):
        if not any(graph.is_used(tensor) for tensor in op.results()):
            graph.remove(op)
    graph.remove_unused_views()
    return graph.finish()


@lowering_pass("common-subexpressions", level=Level.CANONICAL, source="own")
def common_subexpressions(program: Program) -> Program:
    """Merge operators that compute the same from the same operands; parameters are the same if their values are.

    Operands are compared after earlier merges, so whole branches that are equal become one. An operator stays if one of
    its results is an output of the model, is seen through a view or was placed in memory.
    """
    graph = ProgramRewriter(program)
    known: dict[Hashable, Operator] = {}
    identities: dict[str, str] = {}  # of tensors that were merged, the one that is left; of parameters, a hash
    for op in graph.operators():
        operands = tuple(None if tensor is None else _identity(graph, tensor, identities) for tensor in op.inputs)
        key = (op.op_type, json.dumps(dict(op.attributes), sort_keys=True, default=str), operands)
        first = known.setdefault(key, op)
        if first is op or not all(graph.is_internal(tensor) for tensor in op.results()):
            continue
        pairs = list(zip(first.outputs, op.outputs, strict=False))
        if any(old is not None and new is None for new, old in pairs):
            continue  # the first one does not compute an optional result that this one has
        for new, old in pairs:
            if new is not None and old is not None:
                graph.rewire(old, new)
                identities[old.name] = new.name
        graph.remove(op)
    return graph.finish()


def _identity(graph: ProgramRewriter, tensor: Tensor, identities: dict[str, str]) -> str:
    """Return a text that equal tensors share: type, shape and hash of a parameter; shape and identity behind a view."""
    viewed = graph.viewed(tensor)
    if viewed is not None:
        return f"{tensor} of {_identity(graph, viewed, identities)}"
    if tensor.value is not None and tensor.name not in identities:
        content = hashlib.sha256(np.ascontiguousarray(tensor.value).tobytes()).hexdigest()
        identities[tensor.name] = f"{tensor} {content}"
    return identities.get(tensor.name, tensor.name)

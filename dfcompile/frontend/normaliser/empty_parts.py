"""Empty parts: pieces without elements that a Split or Slice cuts off and a Concat puts back."""

from collections.abc import Iterator

import onnx

from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.shapes import infer_types

_CUTS = frozenset(["Slice", "Split"])


def remove_empty_parts(draft: Draft) -> Draft:
    """Return the draft without empty operands of Concats, and without empty results that nobody reads.

    ``a, b = Split(x, [4, 0]); y = Concat(Neg(a), b)`` becomes ``a = Split(x, [4, 0]); y = Identity(Neg(a))``.
    """
    nodes = tuple(draft.proto.graph.node)
    cut = {name for node in nodes if node.op_type in _CUTS for name in node.output}
    if not any(node.op_type == "Concat" and cut.intersection(node.input) for node in nodes):
        return draft
    types = infer_types(draft)
    empty = {name for name in cut if name in types and 0 in (types[name].known_shape or ())}
    return draft.replaced(_without(nodes, empty)) if empty else draft


def _without(nodes: tuple[onnx.NodeProto, ...], empty: set[str]) -> Iterator[onnx.NodeProto]:
    kept = [_filled(node, empty) if node.op_type == "Concat" else node for node in nodes]
    read = {name for node in kept for name in node.input}
    for node in kept:
        if empty.isdisjoint(node.output):
            yield node
            continue
        narrowed = onnx.NodeProto()
        narrowed.CopyFrom(node)
        narrowed.output[:] = [name if name in read or name not in empty else "" for name in node.output]
        if any(narrowed.output):
            yield narrowed


def _filled(node: onnx.NodeProto, empty: set[str]) -> onnx.NodeProto:
    """Return a Concat of those operands that have elements; an Identity if there is one."""
    operands = [name for name in node.input if name not in empty]
    if not operands or len(operands) == len(node.input):
        return node
    filled = onnx.NodeProto()
    filled.CopyFrom(node)
    filled.input[:] = operands
    if len(operands) == 1:
        filled.op_type = "Identity"
        del filled.attribute[:]
    return filled

"""Output copies: an output that is an input, a constant or another output gets a node of its own."""

from collections.abc import Mapping

import onnx
from onnx import helper

from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.free_name import free_name

# What nothing but folding deals with: values that shapes and constants give, or results whose size depends on data.
FOLDED = frozenset(
    ["Constant", "ConstantOfShape", "EyeLike", "NonMaxSuppression", "NonZero", "Range", "Shape", "Size", "Unique"]
)


def copy_border_outputs(draft: Draft) -> Draft:
    """Return the draft with an Identity node before each output that no node computes.

    ``x -> y = f(x), x`` becomes ``x -> y = f(x), x_copy = Identity(x)``; the output keeps its position. What is going
    to be a constant gets another name: ``y = Shape(x)`` becomes ``y.value = Shape(x), y = Identity(y.value)``.
    """
    draft = _with_constants_apart(draft)
    produced = {name for node in draft.proto.graph.node for name in node.output}
    borrowed = [name for name in draft.output_names if name not in produced]
    if not borrowed:
        return draft
    taken = {name for node in draft.proto.graph.node for name in node.output}
    taken.update(draft.input_names, draft.constants)
    nodes = list(draft.proto.graph.node)
    names = {node.name for node in nodes}
    renamed = {}
    for name in borrowed:
        copy = free_name(f"{name}_copy", taken)
        node = helper.make_node("Identity", [name], [copy], name=free_name(f"{name}.copy", names))
        nodes.append(node)
        renamed[name] = copy
    copied = draft.replaced(nodes)
    for output in copied.proto.graph.output:
        output.name = renamed.get(output.name, output.name)
    return copied


def _with_constants_apart(draft: Draft) -> Draft:
    outputs = frozenset(draft.output_names)
    nodes = tuple(draft.proto.graph.node)
    constants = [name for node in nodes if node.op_type in FOLDED for name in node.output if name in outputs]
    if not constants:
        return draft
    taken = {name for node in nodes for name in (*node.input, *node.output)}
    names = {node.name for node in nodes}
    inner = {name: free_name(f"{name}.value", taken) for name in constants}
    copies = (
        helper.make_node("Identity", [value], [name], name=free_name(f"{name}.copy", names))
        for name, value in inner.items()
    )
    return draft.replaced((*(_renamed(node, inner) for node in nodes), *copies))


def _renamed(node: onnx.NodeProto, inner: Mapping[str, str]) -> onnx.NodeProto:
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    renamed.input[:] = [inner.get(name, name) for name in node.input]
    renamed.output[:] = [inner.get(name, name) for name in node.output]
    return renamed

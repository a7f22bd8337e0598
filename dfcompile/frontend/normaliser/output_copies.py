"""Output copies: an output that is an input, a constant or another output gets a node of its own."""

from onnx import helper

from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.free_name import free_name

# Nodes that are nothing but a constant, and are folded into one.
_CONSTANTS = frozenset(["Constant", "ConstantOfShape"])


def copy_border_outputs(draft: Draft) -> Draft:
    """Return the draft with an Identity node before each output that no node computes.

    ``x -> y = f(x), x`` becomes ``x -> y = f(x), x_copy = Identity(x)``; the output keeps its position.
    """
    produced = {name for node in draft.proto.graph.node if node.op_type not in _CONSTANTS for name in node.output}
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

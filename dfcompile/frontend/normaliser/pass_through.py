"""Pass-through nodes: Identity, and Dropout as it stands in inference."""

from collections.abc import Mapping

import onnx

from dfcompile.frontend.onnx.draft import Constant, Draft


def remove_pass_through(draft: Draft) -> Draft:
    """Return the draft without Identity and Dropout nodes, as far as a rename can do it.

    ``t = Relu(x); y = Identity(t); z = Exp(y)`` becomes ``t = Relu(x); z = Exp(t)``. A node between an input or a
    constant and an output stays: an output needs an array of its own.
    """
    nodes = tuple(draft.proto.graph.node)
    outputs = set(draft.output_names)
    produced = {name for node in nodes for name in node.output}
    source: dict[str, str] = {}  # of a value that goes away: the value it is
    renamed: dict[str, str] = {}  # of a value that takes the name of the output it is
    read = outputs | {name for node in nodes for name in node.input}
    kept = []
    for node in nodes:
        if not _passes_through(node, draft.constants, read):
            kept.append(node)
            continue
        origin = source.get(node.input[0], node.input[0])
        if node.output[0] not in outputs:
            source[node.output[0]] = origin
        elif origin in produced and origin not in outputs and origin not in renamed:
            renamed[origin] = node.output[0]
        else:
            kept.append(node)
    if len(kept) == len(nodes):
        return draft
    return draft.replaced(_rewired(node, source, renamed) for node in kept)


def _passes_through(node: onnx.NodeProto, constants: Mapping[str, Constant], read: set[str]) -> bool:
    if node.op_type == "Identity":
        return True
    if node.op_type != "Dropout" or any(mask in read for mask in node.output[1:] if mask):
        return False
    training = node.input[2] if len(node.input) > 2 else ""
    return not training or (training in constants and not constants[training].any())


def _rewired(node: onnx.NodeProto, source: Mapping[str, str], renamed: Mapping[str, str]) -> onnx.NodeProto:
    wired = onnx.NodeProto()
    wired.CopyFrom(node)
    read = [source.get(name, name) for name in node.input]
    wired.input[:] = [renamed.get(name, name) for name in read]
    wired.output[:] = [renamed.get(name, name) for name in node.output]
    return wired

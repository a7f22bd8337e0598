"""Wiring: outputs get nodes of their own, and nodes that pass a value on, or that nothing needs, go away."""

import onnx
from onnx import helper

from dfcompile.frontend.onnx.draft import Constants, Draft, needed_for, renamed
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
    nodes = list(draft.proto.graph.node)
    taken = {name for node in nodes for name in node.output}
    borrowed = [name for name in draft.output_names if name not in taken]
    if not borrowed:
        return draft
    taken.update(draft.input_names, draft.constants)
    names = {node.name for node in nodes}
    copies = {name: free_name(f"{name}_copy", taken) for name in borrowed}
    nodes += [_identity(name, copy, f"{name}.copy", names) for name, copy in copies.items()]
    apart = draft.replaced(nodes)
    for output in apart.proto.graph.output:
        output.name = copies.get(output.name, output.name)
    return apart


def _with_constants_apart(draft: Draft) -> Draft:
    outputs = frozenset(draft.output_names)
    nodes = tuple(draft.proto.graph.node)
    constants = [name for node in nodes if node.op_type in FOLDED for name in node.output if name in outputs]
    if not constants:
        return draft
    names, taken = draft.names()
    inner = {name: free_name(f"{name}.value", taken) for name in constants}
    copies = (_identity(value, name, f"{name}.copy", names) for name, value in inner.items())
    return draft.replaced((*(renamed(node, inner) for node in nodes), *copies))


def _identity(source: str, copy: str, name: str, names: set[str]) -> onnx.NodeProto:
    return helper.make_node("Identity", [source], [copy], name=free_name(name, names))


def remove_pass_through(draft: Draft) -> Draft:
    """Return the draft without Identity nodes, and Dropout as it stands in inference, as far as a rename can do it.

    ``t = Relu(x); y = Identity(t); z = Exp(y)`` becomes ``t = Relu(x); z = Exp(t)``. A node between an input or a
    constant and an output stays: an output needs an array of its own.
    """
    nodes = tuple(draft.proto.graph.node)
    outputs = set(draft.output_names)
    produced = {name for node in nodes for name in node.output}
    source: dict[str, str] = {}  # of a value that goes away: the value it is
    final: dict[str, str] = {}  # of a value that takes the name of the output it is: that name
    read = outputs | {name for node in nodes for name in node.input}
    kept = []
    for node in nodes:
        if not _passes_through(node, draft.constants, read):
            kept.append(node)
            continue
        origin = source.get(node.input[0], node.input[0])
        if node.output[0] not in outputs:
            source[node.output[0]] = origin
        elif origin in produced and origin not in outputs and origin not in final:
            final[origin] = node.output[0]
        else:
            kept.append(node)
    if len(kept) == len(nodes):
        return draft
    names = {**final, **{name: final.get(origin, origin) for name, origin in source.items()}}
    return draft.replaced(renamed(node, names) for node in kept)


def _passes_through(node: onnx.NodeProto, constants: Constants, read: set[str]) -> bool:
    if node.op_type == "Identity":
        return True
    if node.op_type != "Dropout" or any(mask in read for mask in node.output[1:] if mask):
        return False
    training = node.input[2] if len(node.input) > 2 else ""
    return not training or (training in constants and not constants[training].any())


def remove_dead_nodes(draft: Draft) -> Draft:
    """Return the draft without nodes that no output depends on, and without constants that no node reads."""
    nodes = tuple(draft.proto.graph.node)
    needed = needed_for(draft.output_names, nodes)
    kept = [node for node in nodes if not needed.isdisjoint(node.output)]
    constants = {name: value for name, value in draft.constants.items() if name in needed}
    if len(kept) == len(nodes) and len(constants) == len(draft.constants):
        return draft
    return draft.replaced(kept, constants)

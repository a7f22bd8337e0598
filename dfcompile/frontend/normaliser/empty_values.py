"""Empty values: what has no elements is known, and nodes that read it become nodes that do not.

So no later stage meets one: the cache of a decoder's first step costs nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend.element_kind import element_kind, integer_limits
from dfcompile.frontend.normaliser.opset import opset_of
from dfcompile.frontend.onnx.draft import Constant, Draft, copied, read_only, value_names
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.shapes import Types, stand_in

# Optional operands that may as well be omitted if they have no elements: caches of attentions.
_OMITTED: Mapping[str, Sequence[int]] = {
    "Attention": (4, 5),
    "com.microsoft.Attention": (4,),
    "com.microsoft.GroupQueryAttention": (3, 4),
    "com.microsoft.MultiHeadAttention": (6, 7),
}
# Operators with operands after the first that say axes, sizes, a type or the like, of which there may be none.
_TOLD = frozenset(
    ["AffineGrid", "CastLike", "CenterCropPad", "Col2Im", "ConstantOfShape", "Expand", "Pad", "Reshape", "Resize",
     "Slice", "Split", "Squeeze", "Tile", "Unsqueeze", "Upsample"]
)  # fmt: skip
_UPDATES = frozenset(["Scatter", "ScatterElements", "ScatterND"])  # of no element: the data


# What reductions give of no elements; means are not defined, extrema since operator set 20.
_OF_NOTHING: Mapping[str, float] = {
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"), 0),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), -np.inf),
    "ReduceMin": np.inf,
    "ReduceProd": 1,
}
_EXTREMA = frozenset(["ReduceMax", "ReduceMin"])
_EXTREMA_SINCE = 20


def without_empty_values(draft: Draft, types: Types) -> Draft:
    """Return the draft without results, outputs and operands that have no elements, as far as their shapes are known.

    ``e = Relu(x[1, 0, 8]); y = Concat(e, z)`` becomes ``y = Identity(z)``, where ``e`` is an empty constant.

    Args:
        draft: the model.
        types: of its values.
    """
    empty = {name for name, known in types.items() if 0 in (known.known_shape or ())}
    if not empty:
        return draft
    constants = dict(draft.constants)
    values = {*types, *value_names(draft.proto.graph.node)}
    outputs = [output for output in draft.proto.graph.output if output.name not in empty]
    final = {output.name for output in outputs}
    opset = opset_of(draft.proto)
    nodes = []
    for node in draft.proto.graph.node:
        gone = empty.intersection(node.output)
        constants.update((name, read_only(np.zeros(types[name].known_shape or 0, types[name].dtype))) for name in gone)
        reduced = _reduced(node, types, empty, opset) if final.isdisjoint(node.output) else None
        if reduced is not None:
            constants[node.output[0]] = reduced
        if reduced is not None or gone.issuperset(filter(None, node.output)):
            continue
        kept = node
        if gone or not empty.isdisjoint(node.input):
            kept = copied(node, outputs=["" if name in gone else name for name in node.output])
            _without_operands(kept, empty, constants, values)
        nodes.append(kept)
    nodes = _with_outputs_apart(nodes, final, empty, values)
    is_same = nodes == list(draft.proto.graph.node) and len(outputs) == len(draft.proto.graph.output)
    if is_same and constants.keys() == draft.constants.keys():
        return draft
    found = draft.replaced(nodes, constants)
    del found.proto.graph.output[:]
    found.proto.graph.output.extend(outputs)
    return found


def _reduced(node: onnx.NodeProto, types: Types, empty: set[str], opset: int) -> Constant | None:
    """Return what a reduction gives of no elements; None if it is none, or its result is not defined or known."""
    value = _OF_NOTHING.get(node.op_type)
    result = types.get(node.output[0]) if node.output else None
    if value is None or result is None or result.known_shape is None or node.input[0] not in empty:
        return None
    kind = element_kind(result.dtype)
    is_log = node.op_type.startswith("ReduceLog")
    if (node.op_type in _EXTREMA and opset < _EXTREMA_SINCE) or (is_log and kind in "iu"):
        return None
    if np.isinf(value) and kind in "iu":
        value = integer_limits(result.dtype)[value > 0]
    elif kind == "b":
        value = value > 0
    return read_only(np.full(result.known_shape, value, result.dtype))


def _with_outputs_apart(
    nodes: Sequence[onnx.NodeProto], outputs: set[str], empty: set[str], values: set[str]
) -> list[onnx.NodeProto]:
    """Return the nodes with an Identity between an output and what may become a constant: no output is one."""
    names = {node.name for node in nodes}
    found = []
    for node in nodes:
        is_apart = node.op_type == "Identity"  # else one of a declaration that nothing fits is put apart without end
        final = outputs.intersection(node.output) if _reads(node, empty) and not is_apart else set()
        apart = {name: free_name(f"{name}.value", values) for name in node.output if name in final}
        found.append(copied(node, outputs=[apart.get(name, name) for name in node.output]) if apart else node)
        for name, value in apart.items():
            found.append(helper.make_node("Identity", [value], [name], free_name(f"{node.name}.copy", names)))
    return found


def check_empty_operands(draft: Draft) -> Draft:
    """Return the draft itself.

    Raises:
        UnsupportedOpError: a node reads elements of a value that has none.
        UserError: an output without elements is declared with another type.
    """
    empty = {name for name, value in draft.constants.items() if not value.size}
    for node in draft.proto.graph.node:
        for name in _reads(node, empty):
            value = draft.constants[name]
            if node.op_type == "Identity":  # all others have gone
                computed = f"{value.dtype}{list(value.shape)}, which is computed"
                raise UserError(f"output {node.output[0]!r}: declared otherwise than {computed}")
            found = f"operand {name!r} of {node.op_type} has no elements ({list(value.shape)})"
            raise UnsupportedOpError(f"node {node.name!r}: {found} against at least one")
    return draft


def _reads(node: onnx.NodeProto, empty: set[str]) -> list[str]:
    """Return operands that have no elements and are read as data."""
    if node.op_type == "ConstantOfShape":
        return []
    says_sizes = node.op_type in _TOLD or node.op_type.startswith("Reduce")
    return [name for name in (node.input[:1] if says_sizes else node.input) if name in empty]


def _without_operands(node: onnx.NodeProto, empty: set[str], constants: dict[str, Constant], values: set[str]) -> None:
    """Let a node not read operands that have no elements, in place, where it means something without them."""
    if node.op_type == "Concat":
        operands = [name for name in node.input if name not in empty]
        node.input[:] = operands
        if len(operands) == 1:
            stand_in(node, operands[0])
    elif node.op_type in _UPDATES and node.input[1] in empty:
        stand_in(node, node.input[0])
    elif node.op_type in _OMITTED:
        places = _OMITTED[node.op_type]
        node.input[:] = ["" if at in places and name in empty else name for at, name in enumerate(node.input)]
    elif node.op_type == "Gemm" and empty.issuperset(node.input[:2]) and constants.keys() >= {*node.input[:2]}:
        for at, name in enumerate(node.input[:2]):  # over no terms: over a term of zero
            shape = tuple(max(size, 1) for size in constants[name].shape)
            node.input[at] = free_name(f"{name}.zero", values)
            constants[node.input[at]] = np.zeros(shape, constants[name].dtype)

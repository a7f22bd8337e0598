"""Empty values, with a dimension of 0, become constants, and the nodes that read them become nodes that do not.

So no later stage meets one: the empty cache of a decoder's first step costs nothing.
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

# Positions of optional operands that may be omitted if they are empty: caches of attention operators.
_OMITTED: Mapping[str, Sequence[int]] = {
    "Attention": (4, 5),
    "com.microsoft.Attention": (4,),
    "com.microsoft.GroupQueryAttention": (3, 4),
    "com.microsoft.MultiHeadAttention": (6, 7),
}
# Operators that read data from their first operand alone: the others are axes, sizes, a type or the like.
_FIRST_IS_DATA = frozenset(
    ["AffineGrid", "CastLike", "CenterCropPad", "Col2Im", "ConstantOfShape", "Expand", "Pad", "Reshape", "Resize",
     "Slice", "Split", "Squeeze", "Tile", "Unsqueeze", "Upsample"]
)  # fmt: skip
_UPDATES = frozenset(["Scatter", "ScatterElements", "ScatterND"])  # without updates the result is the data
# Results of reductions over no elements. A mean has none; extrema have one since operator set 20.
_EMPTY_REDUCTIONS: Mapping[str, float] = {
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"), 0),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), -np.inf),
    "ReduceMin": np.inf,
    "ReduceProd": 1,
}
_EXTREMA = frozenset(["ReduceMax", "ReduceMin"])
_EXTREMA_SINCE = 20


def without_empty_values(draft: Draft, types: Types) -> Draft:
    """Return the draft with constants for empty results, and without empty operands and model outputs.

    ``e = Relu(x[1, 0, 8]); y = Concat(e, z)`` becomes ``y = Identity(z)``, where ``e`` is an empty constant.

    Args:
        draft: the model.
        types: of its values, with shapes where they are known.
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
        lost = empty.intersection(node.output)  # outputs that become constants
        constants.update((name, read_only(np.zeros(types[name].known_shape or 0, types[name].dtype))) for name in lost)
        reduced = _reduction_of_nothing(node, types, empty, opset) if final.isdisjoint(node.output) else None
        if reduced is not None:
            constants[node.output[0]] = reduced
        if reduced is not None or lost.issuperset(filter(None, node.output)):
            continue
        kept = node
        if lost or not empty.isdisjoint(node.input):
            kept = copied(node, outputs=["" if name in lost else name for name in node.output])
            _without_operands(kept, empty, constants, values)
        nodes.append(kept)
    nodes = _with_separate_outputs(nodes, final, empty, values)
    is_same = nodes == list(draft.proto.graph.node) and len(outputs) == len(draft.proto.graph.output)
    if is_same and constants.keys() == draft.constants.keys():
        return draft
    changed = draft.replaced(nodes, constants)
    del changed.proto.graph.output[:]
    changed.proto.graph.output.extend(outputs)
    return changed


def _reduction_of_nothing(node: onnx.NodeProto, types: Types, empty: set[str], opset: int) -> Constant | None:
    """Return a reduction's result over no elements; None for other nodes, or if it is undefined or unknown."""
    value = _EMPTY_REDUCTIONS.get(node.op_type)
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


def _with_separate_outputs(
    nodes: Sequence[onnx.NodeProto], outputs: set[str], empty: set[str], values: set[str]
) -> list[onnx.NodeProto]:
    """Put an Identity between a model output and a node that may become a constant, which no output may be."""
    names = {node.name for node in nodes}
    separated = []
    for node in nodes:
        is_separate = node.op_type == "Identity"  # another one would follow without end if the declaration is wrong
        final = outputs.intersection(node.output) if _reads(node, empty) and not is_separate else set()
        separate = {name: free_name(f"{name}.value", values) for name in node.output if name in final}
        separated.append(copied(node, outputs=[separate.get(name, name) for name in node.output]) if separate else node)
        for name, value in separate.items():
            separated.append(helper.make_node("Identity", [value], [name], free_name(f"{node.name}.copy", names)))
    return separated


def check_empty_operands(draft: Draft) -> Draft:
    """Check that no node reads data from an empty value, and return the draft itself.

    Raises:
        UnsupportedOpError: a node does.
        UserError: an empty output is declared with another type or shape.
    """
    empty = {name for name, value in draft.constants.items() if not value.size}
    for node in draft.proto.graph.node:
        for name in _reads(node, empty):
            value = draft.constants[name]
            if node.op_type == "Identity":  # any other Identity of an empty value was removed
                computed = f"{value.dtype}{list(value.shape)}, which is computed"
                raise UserError(f"output {node.output[0]!r}: declared otherwise than {computed}")
            operand = f"operand {name!r} of {node.op_type} has no elements ({list(value.shape)})"
            raise UnsupportedOpError(f"node {node.name!r}: {operand} against at least one")
    return draft


def _reads(node: onnx.NodeProto, empty: set[str]) -> list[str]:
    """Return the empty operands that a node reads as data."""
    if node.op_type == "ConstantOfShape":
        return []
    first_is_data = node.op_type in _FIRST_IS_DATA or node.op_type.startswith("Reduce")
    return [name for name in (node.input[:1] if first_is_data else node.input) if name in empty]


def _without_operands(node: onnx.NodeProto, empty: set[str], constants: dict[str, Constant], values: set[str]) -> None:
    """Remove a node's empty operands, in place, where the operator has a meaning without them."""
    if node.op_type == "Concat":
        operands = [name for name in node.input if name not in empty]
        node.input[:] = operands
        if len(operands) == 1:
            stand_in(node, operands[0])
    elif node.op_type in _UPDATES and node.input[1] in empty:
        stand_in(node, node.input[0])
    elif node.op_type in _OMITTED:
        optional = _OMITTED[node.op_type]  # positions
        node.input[:] = ["" if at in optional and name in empty else name for at, name in enumerate(node.input)]
    elif node.op_type == "Gemm" and empty.issuperset(node.input[:2]) and constants.keys() >= {*node.input[:2]}:
        for position, name in enumerate(node.input[:2]):  # a sum of no terms becomes a sum of one term, 0
            shape = tuple(max(size, 1) for size in constants[name].shape)
            node.input[position] = free_name(f"{name}.zero", values)
            constants[node.input[position]] = np.zeros(shape, constants[name].dtype)

"""Selections: a Compress whose condition is a constant takes elements at constant indices."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.free_name import free_name


def index_selections(draft: Draft) -> Draft:
    """Return the draft with a Gather in the place of each Compress whose condition is known.

    ``y = Compress<axis=1>(x, [true, false, true])`` becomes ``y = Gather<axis=1>(x, [0, 2])``, after a Reshape to one
    dimension if there is no axis. How many elements are taken otherwise depends on data.
    """
    nodes = tuple(draft.proto.graph.node)
    known = [node for node in nodes if node.op_type == "Compress" and node.input[1] in draft.constants]
    if not known:
        return draft
    names = {node.name for node in nodes}
    values = {name for node in nodes for name in (*node.input, *node.output)} | set(draft.constants)
    constants = dict(draft.constants)
    replaced = {id(node): tuple(_indexed(node, constants, names, values)) for node in known}
    return draft.replaced([new for node in nodes for new in replaced.get(id(node), (node,))], constants)


def _indexed(
    node: onnx.NodeProto, constants: dict[str, Constant], names: set[str], values: set[str]
) -> Iterator[onnx.NodeProto]:
    data, condition = node.input
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), None)
    if axis is None:
        shape = free_name(f"{node.output[0]}.shape", values)
        constants[shape] = np.array([-1], np.int64)
        flat = free_name(f"{node.output[0]}.flat", values)
        yield helper.make_node("Reshape", [data, shape], [flat], name=free_name(f"{node.name}.reshape", names))
        data = flat
    indices = free_name(f"{node.output[0]}.indices", values)
    constants[indices] = np.flatnonzero(constants[condition]).astype(np.int64)
    yield helper.make_node("Gather", [data, indices], node.output, name=node.name, axis=axis or 0)

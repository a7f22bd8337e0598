"""Branches: an If is the branch that it takes."""

from collections.abc import Sequence

import numpy as np
import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.control_flow.rewriting import Rewriting, Scope, undecided


def branch(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y = If(true) <then_branch = {a = Relu(x)}, …>`` becomes ``a = Relu(x)``, of which ``y`` is another name.

    Raises:
        UnsupportedOpError: the model's inputs decide.
        UserError: the condition is not one truth value, or the branch gives another number of results than the node.
    """
    condition = truth(model, node, scope.operand(node.input[0]) if node.input else "")
    if condition is None:
        raise undecided(
            node,
            f"its condition {node.input[0]!r} depends on an input, which --input can fix"
            if node.input
            else "no condition",
        )
    attribute = "then_branch" if condition else "else_branch"
    results = model.inlined(node, attribute, (), scope)
    if len(results) != len(node.output):
        found = f"{len(results)} results in {attribute!r} against {len(node.output)} results of {node.op_type}"
        raise UserError(f"node {node.name!r}: {found}")
    return results


def truth(model: Rewriting, node: onnx.NodeProto, name: str) -> bool | None:
    """Return a node's condition, None if it depends on an input.

    Raises:
        UserError: it is not one truth value.
    """
    value = model.known.value(name) if name else None
    if value is None:
        return None
    if value.dtype != np.bool_ or value.size != 1:
        found = f"{value.dtype} {list(value.shape)}"
        raise UserError(f"node {node.name!r}: condition {name!r} is {found} against one truth value")
    return bool(value.item())

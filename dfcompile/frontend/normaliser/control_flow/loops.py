"""Branches and loops: an If is the branch that it takes, a Loop its body, once per iteration."""

from collections.abc import Sequence

import numpy as np
import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.control_flow.rewriting import MOST_NODES, Rewriting, Scope, undecided


def branch(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y = If(true) <then_branch = {a = Relu(x)}, …>`` becomes ``a = Relu(x)``, of which ``y`` is another name.

    Raises:
        UnsupportedOpError: the model's inputs decide.
        UserError: the condition is not one truth value, or the branch gives another number of results than the node.
    """
    condition = truth(model, node, scope.operand(node.input[0]) if node.input else "")
    if condition is None:
        fixable = f"its condition {node.input[0]!r} depends on an input, which --input can fix" if node.input else ""
        raise undecided(node, fixable or "no condition")
    return model.inlined_results(node, "then_branch" if condition else "else_branch", (), scope)


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


def loop(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y, s = Loop(2, "", x) <body = (i, c, v) {w = f(v, i)} -> (c, w, w)>`` becomes ``w = f(x, 0); w_1 = f(w, 1)``.

    ``y`` is another name of ``w_1``, ``s`` is ``[w, w_1]``.

    Raises:
        UnsupportedOpError: the model's inputs decide on the iterations.
        UserError: the body does not fit the node, or there are too many iterations.
    """
    limit, condition, *carried = *scope.operands(node), *[""] * (2 - len(node.input))
    most = _most(model, node, limit)
    goes_on = truth(model, node, condition) if condition else True
    if goes_on is None:
        raise undecided(node, f"its condition {condition!r} depends on an input, which --input can fix")
    stacks: list[list[str]] = [[] for _ in range(len(node.output) - len(carried))]
    iteration = 0
    while goes_on and (most is None or iteration < most):
        if iteration == MOST_NODES:
            raise UserError(f"node {node.name!r}: unrolling gives more than {MOST_NODES} iterations")
        count = model.constant(np.asarray(iteration, np.int64), f"{node.name}.iteration")
        true = model.constant(np.ones((), np.bool_), "true")
        first, *results = model.inlined(node, "body", (count, true, *carried), scope)
        if len(results) != len(node.output) or len(results) < len(carried):
            found = f"{len(results)} results after the condition in 'body' against {len(node.output)} of {node.op_type}"
            raise UserError(f"node {node.name!r}: {found}")
        carried = results[: len(carried)]
        for stack, result in zip(stacks, results[len(carried) :], strict=True):
            stack.append(result)
        goes_on = truth(model, node, first)
        if goes_on is None:
            after = f"its condition after {iteration + 1} iterations"
            raise undecided(node, f"{after} depends on an input, which --input can fix")
        iteration += 1
    return [*carried, *_stacked(model, node, stacks, len(carried))]


def _stacked(model: Rewriting, node: onnx.NodeProto, stacks: Sequence[Sequence[str]], first: int) -> Sequence[str]:
    """Return what the results that have a part of each iteration are called."""
    used = list(zip(node.output[first:], stacks, strict=True))
    for name, stack in used:
        if name and not stack:
            raise UserError(f"node {node.name!r}: no iteration gives {name!r} against an array with elements")
    return [model.stacked(stack, 0, node.name) if name else "" for name, stack in used]


def _most(model: Rewriting, node: onnx.NodeProto, limit: str) -> int | None:
    """Return the number of iterations at most, None if the condition alone ends them."""
    if not limit:
        return None
    value = model.known.value(limit)
    if value is None:
        raise undecided(node, f"its number of iterations {limit!r} depends on an input, which --input can fix")
    if value.dtype.kind not in "iu" or value.size != 1:
        found = f"{value.dtype} {list(value.shape)}"
        raise UserError(f"node {node.name!r}: number of iterations {limit!r} is {found} against one integer")
    return int(value.item())

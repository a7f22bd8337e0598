"""Branches, loops and sequences: an If is its branch, a Loop its body per iteration, a sequence the arrays in it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend.normaliser.control_flow.rewriting import MOST_NODES, Rewriting, Rule, Scope, undecided
from dfcompile.frontend.onnx.draft import integer, integers
from dfcompile.frontend.onnx.known_shapes import require

_CONDITION = ("condition", "b", "truth value")
_COUNT = ("number of iterations", "iu", "integer")
_OF_BATCHES = 8  # version of Scan that goes through batches of arrays


def branch(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y = If(true) <then_branch = {a = Relu(x)}, …>`` becomes ``a = Relu(x)``, of which ``y`` is another name.

    Raises:
        UnsupportedOpError: the model's inputs decide.
        UserError: the condition is not one truth value, or the branch gives another number of results than the node.
    """
    if not node.input:
        raise undecided(node, "no condition")
    what = f"its condition {node.input[0]!r}"
    condition = _told(model, node, scope.operand(node.input[0]), what, _CONDITION)
    return model.inlined_results(node, "then_branch" if condition else "else_branch", (), scope)


def _told(model: Rewriting, node: onnx.NodeProto, name: str, what: str, expected: tuple[str, str, str]) -> int:
    """Return the one number that decides on a node's graph.

    Args:
        model: as far as it is rewritten.
        node: that holds the graph.
        name: of the value.
        what: it is, for the error if it depends on an input.
        expected: what it is, kinds of element types as numpy has them, and what these are called.

    Raises:
        UnsupportedOpError: it depends on an input.
        UserError: it is not one such number.
    """
    value = model.known.value(name) if name else None
    if value is None:
        raise undecided(node, f"{what} depends on an input, which --input can fix")
    called, kinds, wanted = expected
    if value.dtype.kind not in kinds or value.size != 1:
        found = f"{value.dtype} {list(value.shape)}"
        raise UserError(f"node {node.name!r}: {called} {name!r} is {found} against one {wanted}")
    return int(value.item())


def loop(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y, s = Loop(2, "", x) <body = (i, c, v) {w = f(v, i)} -> (c, w, w)>`` becomes ``w = f(x, 0); w_1 = f(w, 1)``.

    ``y`` is another name of ``w_1``, ``s`` is ``[w, w_1]``.

    Raises:
        UnsupportedOpError: the model's inputs decide on the iterations.
        UserError: the body does not fit the node, or there are too many iterations.
    """
    limit, condition, *carried = *scope.operands(node), *[""] * (2 - len(node.input))
    most = _told(model, node, limit, f"its number of iterations {limit!r}", _COUNT) if limit else None
    goes_on = _told(model, node, condition, f"its condition {condition!r}", _CONDITION) if condition else True
    stacks: list[list[str]] = [[] for _ in range(len(node.output) - len(carried))]
    iteration = 0
    while goes_on and (most is None or iteration < most):
        require(iteration < MOST_NODES, f"node {node.name!r}: unrolling gives more than {MOST_NODES} iterations")
        count = model.constant(np.asarray(iteration, np.int64), f"{node.name}.iteration")
        true = model.constant(np.ones((), np.bool_), "true")
        first, *results = model.inlined(node, "body", (count, true, *carried), scope)
        if len(results) != len(node.output) or len(results) < len(carried):
            found = f"{len(results)} results after the condition in 'body' against {len(node.output)} of {node.op_type}"
            raise UserError(f"node {node.name!r}: {found}")
        carried = results[: len(carried)]
        for stack, result in zip(stacks, results[len(carried) :], strict=True):
            stack.append(result)
        iteration += 1
        goes_on = _told(model, node, first, f"its condition after {iteration} iterations", _CONDITION)
    return [*carried, *_stacked(model, node, stacks, len(carried))]


def _stacked(model: Rewriting, node: onnx.NodeProto, stacks: Sequence[Sequence[str]], first: int) -> list[str]:
    """Return what the results that have a part of each iteration are called."""
    used = list(zip(node.output[first:], stacks, strict=True))
    for name, stack in used:
        require(not name or stack, f"node {node.name!r}: no iteration gives {name!r} against an array with elements")
    return [model.stacked(stack, 0, node.name) if name else "" for name, stack in used]


_Way: TypeAlias = tuple[str, int, bool]  # of a Scan through an array, or a result: its name, axis, whether from its end


def scan(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``y, s = Scan(v, x) <body = (v, e) {w = f(v, e)} -> (w, w)>`` becomes ``w = f(v, x[0]); w_1 = f(w, x[1])`` ….

    ``y`` is another name of the last ``w``, ``s`` is all of them side by side.

    Raises:
        UnsupportedOpError: the number of elements is not known.
        UserError: the body does not fit the node, or there are too many elements.
    """
    operands = scope.operands(node)
    count = integer(node, "num_scan_inputs")
    is_of_batches = model.opset <= _OF_BATCHES
    most = len(operands) - is_of_batches
    require(0 < count <= most, f"node {node.name!r}: attribute 'num_scan_inputs' is {count} against 1 to {most}")
    return (_of_batches if is_of_batches else _scanned)(model, node, scope, operands, count)


def _of_batches(model: Rewriting, node: onnx.NodeProto, scope: Scope, operands: list[str], count: int) -> list[str]:
    """Go through the arrays of one batch after another: the first axis of everything is that of batches."""
    lengths, *rest = operands
    shape = _shape(model, node, rest[-1], 2)
    if lengths:
        given = model.known.value(lengths)
        if given is None or not np.array_equal(given, np.full(shape[0], shape[1])):
            raise undecided(node, f"its lengths {lengths!r} against {shape[1]} of each sequence")
    results: list[list[str]] = [[] for _ in node.output]
    for batch in range(shape[0]):
        of_batch = [model.element(name, batch, 0, node.name) for name in rest]
        for stack, result in zip(results, _scanned(model, node, scope, of_batch, count), strict=True):
            stack.append(result)
    return _stacked(model, node, results, 0)


def _scanned(model: Rewriting, node: onnx.NodeProto, scope: Scope, operands: list[str], count: int) -> list[str]:
    states, names = operands[: len(operands) - count], operands[len(operands) - count :]
    if len(node.output) < len(states):
        raise UserError(f"node {node.name!r}: {len(node.output)} results against at least {len(states)} states")
    shown = list(node.output[len(states) :])
    directions = "directions" if model.opset <= _OF_BATCHES else "scan_input_directions"
    arrays = _ways(node, names, "scan_input_axes", directions)
    written = _ways(node, shown, "scan_output_axes", "scan_output_directions")
    lengths = {}
    for name, axis, _ in arrays:
        shape = _shape(model, node, name, 1)
        if not -len(shape) <= axis < len(shape):
            raise UserError(f"node {node.name!r}: axis {axis} against {len(shape)} dimensions of {name!r}")
        lengths[name] = shape[axis]
    if len(set(lengths.values())) != 1:
        raise UserError(f"node {node.name!r}: goes through arrays of {sorted(lengths.values())} elements together")
    steps = next(iter(lengths.values()))
    if not 0 < steps <= MOST_NODES:
        raise UserError(f"node {node.name!r}: unrolling gives {steps} iterations against 1 to {MOST_NODES}")
    rows: list[list[str]] = []
    for step in range(steps):
        places = [(name, steps - 1 - step if is_reversed else step, axis) for name, axis, is_reversed in arrays]
        elements = [model.element(*place, node.name) for place in places]
        results = model.inlined_results(node, "body", (*states, *elements), scope)
        rows.append(results[len(states) :])
        states = results[: len(states)]
    for (name, axis, is_reversed), parts in zip(written, zip(*rows, strict=True), strict=True):
        states.append(model.stacked(parts[::-1] if is_reversed else parts, axis, node.name) if name else "")
    return states


def _ways(node: onnx.NodeProto, names: Sequence[str], axes: str, directions: str) -> tuple[_Way, ...]:
    """Return how a Scan goes through each of several arrays.

    Raises:
        UserError: an attribute has not one number per array.
    """
    numbers = []
    for attribute in (axes, directions):
        given = integers(node, attribute)
        given = (0,) * len(names) if given is None else given
        if len(given) != len(names):
            raise UserError(f"node {node.name!r}: attribute {attribute!r} has {len(given)} items against {len(names)}")
        numbers.append(given)
    return tuple((name, axis, direction != 0) for name, axis, direction in zip(names, *numbers, strict=True))


def _shape(model: Rewriting, node: onnx.NodeProto, name: str, least: int) -> tuple[int, ...]:
    shape = model.known.shape(name)
    if shape is None:
        raise undecided(node, f"the shape of {name!r} is not known")
    require(len(shape) >= least, f"node {node.name!r}: {name!r} has {len(shape)} dimensions against at least {least}")
    return shape


def _made(model: Rewriting, node: onnx.NodeProto, items: Sequence[str]) -> Sequence[str]:
    """Return what a sequence of arrays is called."""
    name = model.free(f"{node.name}.sequence")
    model.sequences[name] = tuple(items)
    return (name,)


def _items(model: Rewriting, node: onnx.NodeProto, name: str) -> tuple[str, ...]:
    """Return the arrays of a sequence.

    Raises:
        UnsupportedOpError: nothing is known of it.
    """
    found = model.sequences.get(name)
    if found is None:
        wanted = "a sequence that the model makes"
        raise UnsupportedOpError(f"node {node.name!r}: {node.op_type} of {name!r} against {wanted}")
    return found


def _position(model: Rewriting, node: onnx.NodeProto, name: str, length: int, last: int) -> int:
    """Return a position counted from the front, of those from ``-length`` to ``last``.

    Raises:
        UnsupportedOpError: it depends on an input.
        UserError: there is nothing.
    """
    value = model.known.value(name)
    if value is None:
        raise UnsupportedOpError(f"node {node.name!r}: position {name!r} of {node.op_type} depends on an input")
    position = int(value.item()) if value.size == 1 else last + 1
    require(-length <= position <= last, f"node {node.name!r}: position {value.tolist()} against {-length} to {last}")
    return position + length if position < 0 else position


def _construct(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    return _made(model, node, scope.operands(node))


def _insert(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name, item, *at = scope.operands(node)
    items = _items(model, node, name)
    position = _position(model, node, at[0], len(items), len(items)) if at and at[0] else len(items)
    return _made(model, node, (*items[:position], item, *items[position:]))


def _erase(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name, *at = scope.operands(node)
    items = _items(model, node, name)
    position = _position(model, node, at[0], len(items), len(items) - 1) if at and at[0] else len(items) - 1
    return _made(model, node, (*items[:position], *items[position + 1 :]))


def _at(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name, at = scope.operands(node)
    items = _items(model, node, name)
    return (items[_position(model, node, at, len(items), len(items) - 1)],)


def _length(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    items = _items(model, node, scope.operand(node.input[0]))
    return (model.constant(np.asarray(len(items), np.int64), f"{node.name}.length"),)


def _concat(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    items = _items(model, node, scope.operand(node.input[0]))
    require(items, f"node {node.name!r}: a sequence of nothing against arrays")
    return (model.stacked(items, integer(node, "axis"), node.name, is_new=integer(node, "new_axis") != 0),)


def _split(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``s = SplitToSequence(x, 2)`` becomes ``a, b, c = Split(x, [2, 2, 1])``."""
    name, *given = scope.operands(node)
    shape, axis = model.known.shape(name), integer(node, "axis")
    if shape is None or not -len(shape) <= axis < len(shape):
        raise UserError(f"node {node.name!r}: axis {axis} against the shape of {name!r} (is it known?)")
    lengths, is_each = _lengths(model, node, given[0] if given else "", shape[axis])
    if any(length < 1 for length in lengths) or sum(lengths) != shape[axis]:
        raise UserError(f"node {node.name!r}: parts of {lengths} elements against {shape[axis]} along axis {axis}")
    parts = model.cut(name, lengths, axis, node.name) if len(lengths) > 1 else [name]
    if is_each and not integer(node, "keepdims", 1):
        parts = [model.with_axis("Squeeze", part, axis, node.name) for part in parts]
    return _made(model, node, parts)


def _lengths(model: Rewriting, node: onnx.NodeProto, name: str, extent: int) -> tuple[list[int], bool]:
    """Return how long the parts of a sequence are, and whether it is by default that each is one element."""
    if not name:
        return [1] * extent, True
    value = model.known.value(name)
    if value is None:
        raise UnsupportedOpError(f"node {node.name!r}: lengths {name!r} of {node.op_type} depend on an input")
    if value.ndim:
        return [int(length) for length in value.ravel()], False
    length = max(int(value.item()), 1)
    return [min(length, extent - first) for first in range(0, extent, length)], False


def _map(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    """``s = SequenceMap(t, x) <body = (a, x) {b = f(a, x)}>`` becomes ``b = f(t[0], x); b_1 = f(t[1], x)`` …."""
    first, *others = scope.operands(node)
    results: list[list[str]] = [[] for _ in node.output]
    for position, item in enumerate(_items(model, node, first)):
        bound = [_of_step(model, node, name, position) for name in others]
        for stack, name in zip(results, model.inlined_results(node, "body", (item, *bound), scope), strict=True):
            stack.append(name)
    return [name for stack in results for name in _made(model, node, stack)]


def _of_step(model: Rewriting, node: onnx.NodeProto, name: str, position: int) -> str:
    items = model.sequences.get(name)
    if items is None:
        return name
    if position >= len(items):
        raise UserError(f"node {node.name!r}: a sequence of {len(items)} arrays against at least {position + 1}")
    return items[position]


def _identity(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str] | None:
    name = scope.operand(node.input[0]) if node.input else ""
    return (name,) if name in model.sequences or name in model.absent else None


def _optional(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    if node.input:
        return (scope.operand(node.input[0]),)
    name = model.free(f"{node.name}.absent")
    model.absent.add(name)
    return (name,)


def _present(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name = scope.operand(node.input[0]) if node.input else ""
    require(name not in model.absent and name, f"node {node.name!r}: {node.op_type} of what is absent")
    return (name,)


def _is_present(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name = scope.operand(node.input[0]) if node.input else ""
    return (model.constant(np.asarray(bool(name) and name not in model.absent), f"{node.name}.present"),)


RULES: Mapping[str, Rule] = {
    "ConcatFromSequence": _concat,
    "Identity": _identity,
    "If": branch,
    "Loop": loop,
    "Optional": _optional,
    "OptionalGetElement": _present,
    "OptionalHasElement": _is_present,
    "Scan": scan,
    "SequenceAt": _at,
    **dict.fromkeys(("SequenceConstruct", "SequenceEmpty"), _construct),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
}

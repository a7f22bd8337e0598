"""Sequences: of arrays whose number and positions are known nothing is left but these arrays."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend.normaliser.control_flow.rewriting import Rewriting, Rule, Scope
from dfcompile.frontend.onnx.draft import integer
from dfcompile.frontend.onnx.known_shapes import require


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
    if name in model.absent or not name:
        raise UserError(f"node {node.name!r}: {node.op_type} of what is absent")
    return (name,)


def _is_present(model: Rewriting, node: onnx.NodeProto, scope: Scope) -> Sequence[str]:
    name = scope.operand(node.input[0]) if node.input else ""
    return (model.constant(np.asarray(bool(name) and name not in model.absent), f"{node.name}.present"),)


OF_SEQUENCES: Mapping[str, Rule] = {
    "ConcatFromSequence": _concat,
    "Identity": _identity,
    "Optional": _optional,
    "OptionalGetElement": _present,
    "OptionalHasElement": _is_present,
    "SequenceAt": _at,
    **dict.fromkeys(("SequenceConstruct", "SequenceEmpty"), _construct),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
}

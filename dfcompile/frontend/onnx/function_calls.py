"""Functions of a model: how much inlining them gives, found before anything is inlined, and defaults made explicit."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import with_inner_nodes
from dfcompile.frontend.onnx.free_name import free_name

LARGEST_NODES = 100_000  # that inlining may give
LARGEST_BYTES = 2**26  # of these nodes, or …
LARGEST_FACTOR = 16  # … so many times the model's own bytes
DEEPEST_CALLS = 100  # as ONNX's inliner has it, which calls itself for each

FunctionKey: TypeAlias = tuple[str, str, str]  # domain, name, overload
_Missing: TypeAlias = frozenset[str]  # attributes that a function reads, and neither a call nor a default gives


class _Size(NamedTuple):
    """What a function, with everything that it calls, inlines to."""

    nodes: int
    size_bytes: int
    depth: int


def check_inlined_size(model: onnx.ModelProto) -> None:
    """Check that inlining a model's functions gives a model of reasonable size.

    Each function is looked at once, however often it is called: 25 functions that call the next one twice are 33
    million nodes.

    Raises:
        UserError: functions that call each other in a circle, or too deeply, or that inline to too much; the message
            names the function.
    """
    functions = {_function_key(function): function for function in model.functions}
    most_bytes = max(LARGEST_BYTES, LARGEST_FACTOR * model.ByteSize())
    sizes: dict[FunctionKey, _Size] = {}
    for key in _callees_first(functions):
        size = _checked(f"function {key[1]!r}", functions[key].node, sizes, most_bytes)
        defaults_bytes = sum(entry.ByteSize() for entry in functions[key].attribute_proto)
        sizes[key] = size._replace(size_bytes=size.size_bytes + defaults_bytes)
    _checked("model", model.graph.node, sizes, most_bytes)


def _checked(where: str, nodes: Iterable[onnx.NodeProto], sizes: Mapping[FunctionKey, _Size], most_bytes: int) -> _Size:
    count, size_bytes, depth = 0, 0, 0
    for node in with_inner_nodes(nodes):
        called = sizes.get(_called_key(node))
        count += max(called.nodes, 1) if called else 1  # a call of nothing takes time as well
        size_bytes += node.ByteSize() + (called.size_bytes if called else 0)
        depth = max(depth, called.depth + 1 if called else 0)
    if count > LARGEST_NODES:
        raise UserError(f"{where}: inlining functions gives {count} nodes against at most {LARGEST_NODES}")
    if size_bytes > most_bytes:
        raise UserError(f"{where}: inlining functions gives {size_bytes} bytes against at most {most_bytes}")
    if depth > DEEPEST_CALLS:
        raise UserError(f"{where}: functions are called {depth} deep against at most {DEEPEST_CALLS}")
    return _Size(count, size_bytes, depth)


def _callees_first(functions: Mapping[FunctionKey, onnx.FunctionProto]) -> tuple[FunctionKey, ...]:
    """Return each function after those that it calls."""
    calls = {
        key: [called for called in map(_called_key, with_inner_nodes(function.node)) if called in functions]
        for key, function in functions.items()
    }
    try:
        return tuple(TopologicalSorter(calls).static_order())
    except CycleError as error:
        first, *circle = [repr(name) for _, name, _ in reversed(error.args[1])]
        names = " -> ".join([first, *circle[:-1][:4], first])
        raise UserError(f"function {first}: calls itself ({names}) against functions that end") from error


def with_function_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with each call of a function giving every attribute that has a default.

    ``F(a) <slope = 0.3> {b = LeakyRelu<alpha = @slope>(a)}; y = F(x)`` becomes ``y = F<slope = 0.3>(x)``: ONNX's
    inliner reads no defaults. An attribute that is not given is not there for the functions called in turn either,
    whose own defaults then count; so a function is copied for each set of attributes that its calls leave out.

    Args:
        model: whose functions call each other in no circle.
    """
    functions = {_function_key(function): function for function in model.functions}
    if not any(function.attribute_proto for function in model.functions):
        return model
    complete = onnx.ModelProto()
    complete.CopyFrom(model)
    del complete.functions[:]
    names: dict[tuple[FunctionKey, _Missing], str] = {}
    taken = {function.name for function in model.functions}
    waiting: list[tuple[Iterable[onnx.NodeProto], _Missing]] = [(complete.graph.node, frozenset())]
    while waiting:
        nodes, absent = waiting.pop()
        for node in with_inner_nodes(nodes):
            function = functions.get(_called_key(node))
            if function is None:
                continue
            missing = _complete(node, function, absent)
            form = _function_key(function), missing
            if form not in names:
                names[form] = free_name(function.name, taken) if missing else function.name
                copied = complete.functions.add()
                copied.CopyFrom(function)
                copied.name = names[form]
                del copied.attribute_proto[:]
                waiting.append((copied.node, missing))
            node.op_type = names[form]
    return complete


def _complete(node: onnx.NodeProto, function: onnx.FunctionProto, absent: _Missing) -> _Missing:
    """Add a function's defaults to a call, in place; return what the function then reads in vain."""
    given = [entry for entry in node.attribute if entry.ref_attr_name not in absent]
    names = {entry.name for entry in given}
    given += [entry for entry in function.attribute_proto if entry.name not in names]
    kept = [entry.SerializeToString() for entry in given]
    del node.attribute[:]
    node.attribute.extend(onnx.AttributeProto.FromString(entry) for entry in kept)
    read = {entry.ref_attr_name for inner in with_inner_nodes(function.node) for entry in inner.attribute}
    return frozenset(read - {"", *(entry.name for entry in given)})


def _function_key(function: onnx.FunctionProto) -> FunctionKey:
    """Return what calls of a function have to say."""
    return function.domain, function.name, function.overload


def _called_key(node: onnx.NodeProto) -> FunctionKey:
    """Return which function a node calls, if it is a call."""
    return node.domain, node.op_type, node.overload

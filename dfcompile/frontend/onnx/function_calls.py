"""Functions of a model: how much inlining them gives, found from their calls before anything is inlined."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import onnx

from dfcompile.errors import UserError

LARGEST_NODES = 100_000  # that inlining may give
LARGEST_BYTES = 2**26  # of these nodes, or …
LARGEST_FACTOR = 16  # … so many times the model's own bytes
DEEPEST_CALLS = 100  # as ONNX's inliner has it, which calls itself for each

FunctionKey: TypeAlias = tuple[str, str, str]  # domain, name, overload


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
    functions = {function_key(function): function for function in model.functions}
    most_bytes = max(LARGEST_BYTES, LARGEST_FACTOR * model.ByteSize())
    sizes: dict[FunctionKey, _Size] = {}
    for key in _callees_first(functions):
        size = _checked(f"function {key[1]!r}", functions[key].node, sizes, most_bytes)
        defaults_bytes = sum(entry.ByteSize() for entry in functions[key].attribute_proto)
        sizes[key] = size._replace(size_bytes=size.size_bytes + defaults_bytes)
    _checked("model", model.graph.node, sizes, most_bytes)


def _checked(where: str, nodes: Iterable[onnx.NodeProto], sizes: Mapping[FunctionKey, _Size], most_bytes: int) -> _Size:
    found = _size(nodes, sizes)
    if found.nodes > LARGEST_NODES:
        raise UserError(f"{where}: inlining functions gives {found.nodes} nodes against at most {LARGEST_NODES}")
    if found.size_bytes > most_bytes:
        raise UserError(f"{where}: inlining functions gives {found.size_bytes} bytes against at most {most_bytes}")
    if found.depth > DEEPEST_CALLS:
        raise UserError(f"{where}: functions are called {found.depth} deep against at most {DEEPEST_CALLS}")
    return found


def _size(nodes: Iterable[onnx.NodeProto], sizes: Mapping[FunctionKey, _Size]) -> _Size:
    count, size_bytes, depth = 0, 0, 0
    for node in with_inner_nodes(nodes):
        called = sizes.get(called_key(node))
        count += max(called.nodes, 1) if called else 1  # a call of nothing takes time as well
        size_bytes += node.ByteSize() + (called.size_bytes if called else 0)
        depth = max(depth, called.depth + 1 if called else 0)
    return _Size(count, size_bytes, depth)


def _callees_first(functions: Mapping[FunctionKey, onnx.FunctionProto]) -> Iterator[FunctionKey]:
    """Yield each function after those that it calls."""
    done: set[FunctionKey] = set()
    for start in functions:
        path: dict[FunctionKey, Iterator[FunctionKey]] = (
            {} if start in done else {start: _calls(functions[start], functions)}
        )
        while path:
            current, waiting = next(reversed(path.items()))
            following = next((key for key in waiting if key not in done), None)
            if following is None:
                del path[current]
                done.add(current)
                yield current
            elif following in path:
                circle = [*path][[*path].index(following) :]
                names = " -> ".join(repr(key[1]) for key in [*circle[:5], following])
                raise UserError(f"function {following[1]!r}: calls itself ({names}) against functions that end")
            else:
                path[following] = _calls(functions[following], functions)


def _calls(function: onnx.FunctionProto, functions: Mapping[FunctionKey, onnx.FunctionProto]) -> Iterator[FunctionKey]:
    called = dict.fromkeys(called_key(node) for node in with_inner_nodes(function.node))
    return iter([key for key in called if key in functions])


def with_inner_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of the graphs that they hold; protobuf itself limits how deep these are nested."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from with_inner_nodes(graph.node)


def function_key(function: onnx.FunctionProto) -> FunctionKey:
    """Return what calls of a function have to say."""
    return function.domain, function.name, function.overload


def called_key(node: onnx.NodeProto) -> FunctionKey:
    """Return which function a node calls, if it is a call."""
    return node.domain, node.op_type, node.overload

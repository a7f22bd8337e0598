"""Function defaults: attributes that a call of one of the model's functions leaves to the function, made explicit."""

from collections.abc import Iterable, Iterator

import onnx

from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.function_calls import FunctionKey, called_key, function_key, with_inner_nodes

_Missing = frozenset[str]  # attributes that a function reads, and neither a call nor a default gives


def with_function_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with each call of a function giving every attribute that has a default.

    ``F(a) <slope = 0.3> {b = LeakyRelu<alpha = @slope>(a)}; y = F(x)`` becomes ``y = F<slope = 0.3>(x)``: ONNX's
    inliner reads no defaults. An attribute that is not given is not there for the functions called in turn either,
    whose own defaults then count; so a function is copied for each set of attributes that its calls leave out.

    Args:
        model: whose functions call each other in no circle.
    """
    functions = {function_key(function): function for function in model.functions}
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
            function = functions.get(called_key(node))
            if function is None:
                continue
            missing = _complete(node, function, absent)
            form = function_key(function), missing
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
    return frozenset(_read(function)).difference(entry.name for entry in given)


def _read(function: onnx.FunctionProto) -> Iterator[str]:
    for node in with_inner_nodes(function.node):
        for entry in node.attribute:
            if entry.ref_attr_name:
                yield entry.ref_attr_name

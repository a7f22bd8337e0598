"""Models whose nodes are functions of their own, with attributes that have defaults, to any depth."""

import onnx
from onnx import AttributeProto, helper

from tests.fuzz.draw import Draw

_FORM = 9  # of files, since which functions have defaults
_DOMAIN = "own"


def with_functions(content: bytes, draw: Draw) -> bytes:
    """Return a model, some of whose nodes are calls of functions that hold them."""
    model = onnx.load_model_from_string(content)
    opset = model.opset_import[0].version
    for node in model.graph.node:
        for _ in range(draw.choice([0, 1, 1, 2, 3])):
            _wrap(node, model, opset, draw)
    if model.functions:
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
        model.ir_version = _FORM
    return model.SerializeToString()


def _wrap(node: onnx.NodeProto, model: onnx.ModelProto, opset: int, draw: Draw) -> None:
    """Make a node a call of a function that holds it, in place; what it computes stays the same."""
    function = model.functions.add(domain=_DOMAIN, name=f"F{len(model.functions)}")
    function.opset_import.extend([helper.make_opsetid("", opset), helper.make_opsetid(_DOMAIN, 1)])
    inner = function.node.add()
    inner.CopyFrom(node)
    # What is omitted here is omitted there: an inner call has no place for it.
    inputs = {name: f"a{at}" for at, name in enumerate(dict.fromkeys(filter(None, node.input)))}
    outputs = {name: f"r{at}" for at, name in enumerate(filter(None, node.output))}
    inner.input[:] = [inputs.get(name, "") for name in node.input]
    inner.output[:] = [outputs.get(name, "") for name in node.output]
    function.input.extend(inputs.values())
    function.output.extend(outputs.values())
    given = [AttributeProto.FromString(entry.SerializeToString()) for entry in inner.attribute]
    del inner.attribute[:], node.attribute[:]
    for number, entry in enumerate(given):
        _pass_on(entry, f"p{number}", inner, node, function, draw)
    if draw.chance(0.3):  # nobody gives it, and it has no default
        function.attribute.append("absent")
        if not any(entry.name == "absent" for entry in inner.attribute) and inner.domain == _DOMAIN:
            inner.attribute.append(
                AttributeProto(name="absent", ref_attr_name="absent", type=AttributeProto.FLOAT)
            )  # fmt: skip
    node.input[:], node.output[:] = list(inputs), list(outputs)
    node.op_type, node.domain = function.name, _DOMAIN


def _pass_on(
    entry: AttributeProto,
    name: str,
    inner: onnx.NodeProto,
    node: onnx.NodeProto,
    function: onnx.FunctionProto,
    draw: Draw,
) -> None:
    """Give an attribute to the inner node: as it is, by a default, by the call, or by a call against a default."""
    way = draw.choice(["inner", "default", "call", "override"])
    if way == "inner" or entry.ref_attr_name:
        inner.attribute.append(entry)
        return
    inner.attribute.append(AttributeProto(name=entry.name, ref_attr_name=name, type=entry.type))
    named = AttributeProto.FromString(entry.SerializeToString())
    named.name = name
    if way == "default":
        function.attribute_proto.append(named)
        return
    node.attribute.append(named)
    if way == "call":
        function.attribute.append(name)
    else:
        other = AttributeProto.FromString(named.SerializeToString())
        other.i += 1
        other.f += 1.0
        function.attribute_proto.append(other)

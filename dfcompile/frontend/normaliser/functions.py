"""Functions: an operator that ONNX itself defines by other operators is replaced by these."""

import onnx
from onnx import helper, inliner
from onnx.defs import OpSchema

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.control_flow import without_control_flow
from dfcompile.frontend.normaliser.opset import opset_of
from dfcompile.frontend.onnx.draft import Draft, constant_node, copied, renamed
from dfcompile.frontend.onnx.element_type import onnx_type
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.shapes import Types, infer_types
from dfcompile.host.printable import one_line

# Others that ONNX defines so (Gelu, LayerNormalization …) have expansions of their own, which are cheaper.
FUNCTIONS = frozenset(
    ["CausalConvWithState", "CenterCropPad", "LinearAttention", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]
)

_DOMAIN = "definition"


def expand_functions(draft: Draft) -> Draft:
    """Return the draft with the operators of `FUNCTIONS` replaced by their definition in ONNX, again and again.

    ``[crop] y = CenterCropPad(x, shape)`` becomes ``[crop.shape] … [crop.pad] … [crop.slice] y = …``.

    Raises:
        UserError: ONNX has no definition for this form of an operator.
    """
    while any(node.op_type in FUNCTIONS for node in draft.proto.graph.node):
        nodes, types = tuple(draft.proto.graph.node), infer_types(draft)
        names, values = draft.names()
        expanded: list[onnx.NodeProto] = []
        for node in nodes:
            if node.op_type not in FUNCTIONS:
                expanded.append(node)
                continue
            border = {name: name for name in ("", *node.input, *node.output)}
            for inner in _inlined(node, draft.proto, types):
                for name in inner.output:
                    if name not in border:
                        border[name] = free_name(f"{node.name}.{name}", values)
                expanded.append(renamed(inner, border))
                expanded[-1].name = free_name(f"{node.name}.{inner.op_type.lower()}", names)
        draft = draft.replaced(expanded)
    return draft


def _inlined(node: onnx.NodeProto, proto: onnx.ModelProto, types: Types) -> tuple[onnx.NodeProto, ...]:
    # ONNX's own inliner of such functions gives up where an operand is omitted: so they become functions of the model.
    call = copied(node)
    call.domain = _DOMAIN
    given = {attribute.name for attribute in node.attribute}
    schema = onnx.defs.get_schema(node.op_type, opset_of(proto), "")
    defaults = (attribute.default_value for name, attribute in sorted(schema.attributes.items()) if name not in given)
    call.attribute.extend(default for default in defaults if default.name)
    ends = (node.input, node.output)
    inputs, outputs = ([_declared(name, types) for name in dict.fromkeys(names) if name] for names in ends)
    graph, imports = helper.make_graph([call], "function", inputs, outputs), [*proto.opset_import]
    imports.append(helper.make_opsetid(_DOMAIN, 1))
    functions = [_definition(node, schema, opset_of(proto), types)]
    alone = helper.make_model(graph, opset_imports=imports, ir_version=proto.ir_version, functions=functions)
    try:
        inlined = inliner.inline_local_functions(alone)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"node {node.name!r}: {node.op_type} cannot be expanded: {one_line(error)}") from error
    plain = without_control_flow(Draft(inlined, {}))
    return (*(constant_node(name, value) for name, value in plain.constants.items()), *plain.proto.graph.node)


def _definition(node: onnx.NodeProto, schema: OpSchema, opset: int, types: Types) -> onnx.FunctionProto:
    function = onnx.FunctionProto()
    function.CopyFrom(schema.function_body)
    if not function.node:  # the definition depends on attributes and on which operands are there
        operands = [_declared(name, types).type.SerializeToString() for name in node.input]
        define = schema.get_context_dependent_function_with_opset_version  # type: ignore[attr-defined]  # no stub has it
        function.ParseFromString(define(schema.since_version, node.SerializeToString(), operands))
    if not function.node:
        raise UserError(f"node {node.name!r}: this form of {node.op_type} has no definition by other operators in ONNX")
    function.domain = _DOMAIN
    # It may be as of an earlier version, but still means the same: else ONNX had another one.
    del function.opset_import[:]
    function.opset_import.append(helper.make_opsetid("", opset))
    return function


def _declared(name: str, types: Types) -> onnx.ValueInfoProto:
    known = types.get(name)
    if known is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, onnx_type(known.dtype), known.shape)

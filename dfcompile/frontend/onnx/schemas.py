"""Schemas: what ONNX's tools know of an operator, of ONNX itself or a contributed one.

A draft calls an operator of another domain than ONNX's by its full name, such as com.microsoft.Gelu; onnxruntime's
FusedConv and FusedGemm become the nodes of ONNX that they were fused from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import onnx
from onnx import helper
from onnx.defs import OpSchema

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx.contributed.layers import LAYERS
from dfcompile.frontend.onnx.contributed.quantised import QUANTISED
from dfcompile.frontend.onnx.contributed_operator import DOMAIN, ContributedOperator
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, text
from dfcompile.frontend.onnx.element_type import schema_name

# The contributed operators that can be compiled, by the name that drafts have for them.
CONTRIBUTED: Mapping[str, ContributedOperator] = {each.op_type: each for each in (*LAYERS, *QUANTISED)}
# What onnxruntime has in the domain of ONNX, in operator sets before the one where ONNX has it as well, if ever.
_MISPLACED = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 2**31}
_FUSED = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
# By name: the attributes whose values FusedConv lists as 'activation_params'.
_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
    **dict.fromkeys(("Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
}
_BOUNDS_AS_OPERANDS = 11  # the operator set from which a Clip has them
_OF_GEMM = {"activation_alpha": "alpha", "activation_beta": "beta", "activation_gamma": "gamma"}


def schema_of(op_type: str, opset: int) -> OpSchema:
    """Return the schema of an operator as drafts call it.

    Args:
        op_type: such as ``Gelu``, or ``com.microsoft.Gelu``.
        opset: version of ONNX's own operators.

    Raises:
        onnx.defs.SchemaError: there is no such operator in that version.
    """
    if op_type in CONTRIBUTED:
        register_contributed()
        return onnx.defs.get_schema(op_type, 1, DOMAIN)
    return onnx.defs.get_schema(op_type, opset, "")


def fits_schema(node: onnx.NodeProto, opset: int) -> bool:
    """Whether a node of ONNX's own operators has as many operands and results as its operator takes and gives.

    Args:
        node: any.
        opset: version of the operators; of one that they do not have the answer is no.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    is_given = schema.min_input <= len(node.input) <= schema.max_input
    return is_given and schema.min_output <= len(node.output) <= schema.max_output


@cache  # ONNX has one table of schemas for the process, which refuses a second entry of a name
def register_contributed() -> None:
    """Tell ONNX's checker and shape inference of the contributed operators, under the names that drafts have."""
    for operator in CONTRIBUTED.values():
        onnx.defs.register_schema(operator.schema(schema_name))


def add_nodes(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Put nodes in a model, in place: contributed operators by their full name, fused ones in their parts.

    So no operator of one domain is taken for that of the same name in another one. A fused activation becomes nodes of
    ONNX itself.

    Raises:
        UnsupportedOpError: a fused node has an activation that is not known.
    """
    opset = next((entry.version for entry in model.opset_import if entry.domain in OWN_DOMAINS), 1)
    for node in nodes:
        is_misplaced = node.domain in OWN_DOMAINS and opset < _MISPLACED.get(node.op_type, 0)
        full_name = f"{DOMAIN}.{node.op_type}"
        if (node.domain == DOMAIN or is_misplaced) and full_name in CONTRIBUTED:
            register_contributed()
            model.graph.node.append(node)
            model.graph.node[-1].op_type = full_name
            model.graph.node[-1].domain = DOMAIN
            if is_misplaced and all(entry.domain != DOMAIN for entry in model.opset_import):
                model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        else:
            model.graph.node.extend(_unfused(node, opset))


def _unfused(node: onnx.NodeProto, opset: int) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that a fused one stands for; any other node itself.

    ``[c] y = FusedConv<activation="Relu">(x, w, b, z)`` becomes
    ``[c] y.conv = Conv(x, w, b) [c.add] y.add = Add(y.conv, z) [c.relu] y = Relu(y.add)``.

    Args:
        node: any.
        opset: version of ONNX's own operators.

    Raises:
        UnsupportedOpError: the activation is none that is known, or has another number of parameters.
    """
    if node.domain != DOMAIN or node.op_type not in _FUSED:
        yield node
        return
    name = node.name or node.op_type
    activation = text(node, "activation")
    if activation not in _ACTIVATIONS:
        known = ", ".join(sorted(filter(None, _ACTIVATIONS)))
        raise UnsupportedOpError(f"node {name!r}: attribute 'activation' is {activation!r} against {known}")
    steps = [_FUSED[node.op_type]]
    added = node.input[3] if node.op_type == "FusedConv" and len(node.input) > 3 else ""
    steps += ["Add"] * bool(added) + [activation] * bool(activation)
    values = [f"{node.output[0]}.{step.lower()}" for step in steps[:-1]] + [node.output[0]]
    product = helper.make_node(steps[0], node.input[:3], values[:1], name=node.name)
    product.attribute.extend(entry for entry in node.attribute if not entry.name.startswith("activation"))
    yield product
    if added:
        yield helper.make_node("Add", [values[0], added], [values[1]], name=f"{name}.add")
    if activation:
        applied = helper.make_node(activation, [values[-2]], values[-1:], name=f"{name}.{activation.lower()}")
        parameters = _parameters(node, name, activation)
        if activation == "Clip" and opset >= _BOUNDS_AS_OPERANDS:
            for bound, value in parameters.items():
                constant = helper.make_tensor(bound, onnx.TensorProto.FLOAT, (), [value])
                applied.input.append(f"{values[-1]}.{bound}")
                yield helper.make_node("Constant", [], applied.input[-1:], name=f"{name}.{bound}", value=constant)
            parameters = {}
        applied.attribute.extend(helper.make_attribute(key, value) for key, value in parameters.items())
        yield applied


def _parameters(node: onnx.NodeProto, name: str, activation: str) -> Mapping[str, float]:
    wanted = _ACTIVATIONS[activation]
    listed = next((tuple(entry.floats) for entry in node.attribute if entry.name == "activation_params"), None)
    if listed is not None:
        if len(listed) != len(wanted):
            found = f"attribute 'activation_params' has {len(listed)} numbers"
            raise UnsupportedOpError(f"node {name!r}: {found} against {len(wanted)} of {activation}")
        return dict(zip(wanted, listed, strict=True))
    given = {_OF_GEMM[entry.name]: entry.f for entry in node.attribute if entry.name in _OF_GEMM}
    return {parameter: value for parameter, value in given.items() if parameter in wanted}

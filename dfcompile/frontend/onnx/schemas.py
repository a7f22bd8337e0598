"""Schemas: the inputs, outputs and attributes of operators, of ONNX itself and contributed by onnxruntime.

A draft, the ONNX model while it is normalised, calls an operator of another domain than ONNX's by its full name, as in
com.microsoft.Gelu; FusedConv and FusedGemm become the nodes of ONNX that onnxruntime fused them from.
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
CONTRIBUTED: Mapping[str, ContributedOperator] = {operator.op_type: operator for operator in (*LAYERS, *QUANTISED)}
# Operators of onnxruntime in ONNX's own domain, with the operator set in which ONNX defines them itself; 2**31: none.
_MISPLACED = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 2**31}
_FUSED = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
# By name: the attributes whose values FusedConv lists as 'activation_params'.
_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
    **dict.fromkeys(("Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
}
_BOUNDS_AS_OPERANDS = 11  # from this operator set on, the bounds of Clip are operands, not attributes
# Attributes of FusedGemm, and those of its activation that they are.
_GEMM_PARAMETERS = {"activation_alpha": "alpha", "activation_beta": "beta", "activation_gamma": "gamma"}


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
    """Whether ONNX's operator set of a version has the operator of a node, with as many inputs and outputs."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    inputs_fit = schema.min_input <= len(node.input) <= schema.max_input
    return inputs_fit and schema.min_output <= len(node.output) <= schema.max_output


@cache  # ONNX has one table of schemas for the process, which refuses a second entry of a name
def register_contributed() -> None:
    """Tell ONNX's checker and shape inference of the contributed operators, under the names that drafts have."""
    for operator in CONTRIBUTED.values():
        onnx.defs.register_schema(operator.schema(schema_name))


def add_nodes(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Add nodes to a model, in place: contributed operators under their full name, fused ones as separate nodes.

    The full name keeps apart operators of the same name in two domains.

    Raises:
        UnsupportedOpError: a fused node has an unknown activation.
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
    """Yield the nodes that a fused node was made from; any other node itself.

    ``[c] y = FusedConv<activation="Relu">(x, w, b, z)`` becomes
    ``[c] y.conv = Conv(x, w, b) [c.add] y.add = Add(y.conv, z) [c.relu] y = Relu(y.add)``.

    Raises:
        UnsupportedOpError: the activation is unknown, or has another number of parameters.
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
    addend = node.input[3] if node.op_type == "FusedConv" and len(node.input) > 3 else ""
    steps += ["Add"] * bool(addend) + [activation] * bool(activation)
    values = [f"{node.output[0]}.{step.lower()}" for step in steps[:-1]] + [node.output[0]]
    product = helper.make_node(steps[0], node.input[:3], values[:1], name=node.name)
    product.attribute.extend(entry for entry in node.attribute if not entry.name.startswith("activation"))
    yield product
    if addend:
        yield helper.make_node("Add", [values[0], addend], [values[1]], name=f"{name}.add")
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
    names = _ACTIVATIONS[activation]
    listed = next((tuple(entry.floats) for entry in node.attribute if entry.name == "activation_params"), None)
    if listed is not None:
        if len(listed) != len(names):
            numbers = f"attribute 'activation_params' has {len(listed)} numbers"
            raise UnsupportedOpError(f"node {name!r}: {numbers} against {len(names)} of {activation}")
        return dict(zip(names, listed, strict=True))
    values = {_GEMM_PARAMETERS[entry.name]: entry.f for entry in node.attribute if entry.name in _GEMM_PARAMETERS}
    return {parameter: value for parameter, value in values.items() if parameter in names}

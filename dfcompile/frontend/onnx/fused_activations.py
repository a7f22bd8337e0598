"""Fused activations: onnxruntime's FusedConv and FusedGemm become the nodes of ONNX that they were fused from."""

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import helper

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx.contributed_operator import DOMAIN

_FUSED = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
# By name: the attributes whose values FusedConv lists as 'activation_params'.
_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    "": (),
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
_BOUNDS_AS_OPERANDS = 11  # the operator set from which a Clip has them
_OF_GEMM = {"activation_alpha": "alpha", "activation_beta": "beta", "activation_gamma": "gamma"}


def unfused(node: onnx.NodeProto, opset: int) -> Iterator[onnx.NodeProto]:
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
    activation = next((entry.s.decode() for entry in node.attribute if entry.name == "activation"), "")
    if activation not in _ACTIVATIONS:
        known = ", ".join(filter(None, _ACTIVATIONS))
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
            raise UnsupportedOpError(
                f"node {name!r}: attribute 'activation_params' has {len(listed)} numbers against {len(wanted)} of "
                f"{activation}"
            )
        return dict(zip(wanted, listed, strict=True))
    given = {_OF_GEMM[entry.name]: entry.f for entry in node.attribute if entry.name in _OF_GEMM}
    return {parameter: value for parameter, value in given.items() if parameter in wanted}

"""Attributes that switch something are 0 or 1; operators of several operands broadcast from operator set 8 on."""

import numpy as np
import onnx
import pytest

from dfcompile.errors import UserError
from tests.onnx_nodes import Node, check_node, lowered, random

SWITCHES = {
    "noop_with_empty_axes": Node("ReduceSum", [random((2, 3)), np.array([0])], constants=[1]),
    "detect_negative": Node("IsInf", [random((2, 3))]),
    "upper": Node("Trilu", [random((2, 3))]),
    "allowzero": Node("Reshape", [random((2, 3)), np.array([6])], constants=[1]),
    "storage_order": Node("MaxPool", [random((1, 1, 4))], attributes={"kernel_shape": [2]}),
    "align_corners": Node("GridSample", [random((1, 1, 2, 2)), random((1, 1, 1, 2))]),
    "inverse": Node("DFT", [random((1, 4, 2))]),
    "onesided": Node("DFT", [random((1, 4, 1))]),
    "periodic": Node("HannWindow", [np.array(4)], constants=[0]),
    "interleaved": Node("RotaryEmbedding", [random((1, 1, 2, 2)), random((1, 2, 1)), random((1, 2, 1))], opset=23),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_switch_is_off_or_on(name: str) -> None:
    model = SWITCHES[name].model()
    model.graph.node[0].attribute.append(onnx.helper.make_attribute(name, 3))

    with pytest.raises(UserError, match=f"node 'op': attribute '{name}' is 3 against 0 or 1"):
        lowered(model)


@pytest.mark.parametrize("op_type", ["Max", "Mean", "Min", "Sum"])
def test_old_operators_of_several_operands_do_not_broadcast(op_type: str) -> None:
    operands = [random((2, 3)), random((3,))]

    with pytest.raises(UserError, match=r"'x1' is 3 against 2×3 of 'x0' \(operator set 7 does not broadcast here\)"):
        lowered(Node(op_type, operands, opset=7).model())
    check_node(Node(op_type, operands, opset=8))


def test_output_shape_against_no_pads() -> None:
    attributes: dict[str, str | list[int]] = {"auto_pad": "VALID", "output_shape": [6], "strides": [3]}
    node = Node("ConvTranspose", [random((1, 1, 3)), random((1, 1, 2))], attributes=attributes)

    with pytest.raises(UserError, match="node 'op': attribute 'auto_pad' is VALID, which has no pads, against those"):
        lowered(node.model())

"""Every element-wise operator in every data type that ONNX allows it."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import defs, helper

from dfcompile.lowering.expansions.elementwise import FORMULAS, OF_SEVERAL, VARIADIC
from tests.onnx_nodes import Array, Node, random

DTYPES = (
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)
ONNX_NAMES = {"float32": "float", "float64": "double"}
OPSET = 24
ABOVE_ONE = {"Acosh"}
WITHIN_ONE = {"Acos", "Asin", "Atanh"}
POSITIVE = {"Log", "Reciprocal", "Sqrt"}


def allowed_dtypes(op_type: str) -> list[str]:
    schema = defs.get_schema(op_type, OPSET)
    operand_types = next(
        (
            constraint.allowed_type_strs
            for constraint in schema.type_constraints
            if constraint.type_param_str == schema.inputs[-1].type_str
        ),
        [schema.inputs[-1].type_str],
    )
    return [dtype for dtype in DTYPES if f"tensor({ONNX_NAMES.get(dtype, dtype)})" in operand_types]


def operand(op_type: str, dtype: str, seed: int = 0) -> Array:
    values = random((2, 3), dtype, seed)
    if np.dtype(dtype).kind != "f":
        return values
    if op_type in WITHIN_ONE:
        return np.tanh(values)
    return 1 + np.abs(values) if op_type in ABOVE_ONE | POSITIVE else values


def unary_nodes() -> Iterator[Node]:
    for op_type in [*FORMULAS, "Gelu", "IsInf"]:
        for dtype in allowed_dtypes(op_type):
            yield Node(op_type, [operand(op_type, dtype)], opset=OPSET)


def binary_nodes() -> Iterator[Node]:
    for op_type in [*(found.op_type for found in (*OF_SEVERAL, *VARIADIC)), "Mod"]:
        for dtype in allowed_dtypes(op_type):
            first, second = operand(op_type, dtype), operand(op_type, dtype, 1)[:1]
            if op_type in ("Div", "Mod") and np.dtype(dtype).kind in "iu":
                second = second + (second == 0).astype(dtype)
            condition = [random((2, 3), "bool", 2)] if op_type == "Where" else []
            attributes = {"fmod": 1} if np.dtype(dtype).kind == "f" and op_type == "Mod" else {}
            yield Node(op_type, [*condition, first, second], attributes=attributes, opset=OPSET)


def nodes() -> list[Node]:
    return [*unary_nodes(), *binary_nodes()]


def side_by_side(nodes: Sequence[Node]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a model of nodes that know nothing of each other, and its feeds; ``v3_y0`` is a result of the fourth."""
    feeds: dict[str, Array] = {}
    graph = onnx.GraphProto(name="all")
    for number, node in enumerate(nodes):
        model = node.model()
        rename = {value.name: f"v{number}_{value.name}" for value in (*model.graph.input, *model.graph.output)}
        for value in (*model.graph.input, *model.graph.output):
            value.name = rename[value.name]
        graph.input.extend(model.graph.input)
        graph.output.extend(model.graph.output)
        (copied,) = model.graph.node
        copied.name = f"n{number}"
        copied.input[:] = [rename[name] for name in copied.input]
        copied.output[:] = [rename[name] for name in copied.output]
        graph.node.append(copied)
        feeds |= {rename[name]: value for name, value in node.feeds.items()}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]), feeds


def tolerance(node: Node) -> float:
    return 4e-3 if any(value is not None and value.dtype == np.float16 for value in node.operands) else 1e-5


def name_of(node: Node) -> str:
    return f"{node.op_type}-{node.operands[-1].dtype if node.operands[-1] is not None else ''}"

"""Mutations of models: of fields, which a person could have got wrong, and of bytes, as damage does."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.fuzz.draw import Draw
from tests.fuzz.generated_models import GENERATORS, ModelCase
from tests.fuzz.kind import Case

Mutation = Callable[[onnx.ModelProto, Draw], None]

NUMBERS = (0, 1, 2, 3, 4, 5, 7, -1, -2, -3, 100, -100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
NEAR = (0, 1, 1, 2, 2, 3, 4, -1, -1, -2)
REALS = (0.0, 1.0, -1.0, 0.5, 1e-5, 1e30, -1e30, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "constant", "reflect", "edge", "wrap", "nearest", "linear",
    "cubic", "DCR", "CRD", "none", "sum", "mean", "tanh", "floor", "ceil", "asymmetric", "align_corners", "ab,bc->ac",
    "ii->i", "...", "LEFT", "a\x1b[31mb", "x\ny",
)  # fmt: skip
_KINDS = (
    AttributeProto.UNDEFINED, AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS,
    AttributeProto.STRING, AttributeProto.STRINGS, AttributeProto.TENSOR, AttributeProto.GRAPH,
)  # fmt: skip
NAMES = ("", "x", "y0_0", "x0_0", "n0", "a b", "é", "a\x1b[31m", "b\nc", "∞", "x" * 300)


def mutated(case: ModelCase, draw: Draw) -> Case:
    """Return a model of which one to three things are otherwise."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    damaged = draw.chance(0.12)
    for _ in range(0 if damaged else draw.choice([1, 1, 1, 2, 3])):
        draw.choice(_MUTATIONS)(model, draw)
    content = model.SerializeToString()
    return Case(".onnx", damaged_bytes(content, draw) if damaged else content, dict(case.feeds))


def damaged_bytes(content: bytes, draw: Draw) -> bytes:
    """Return a file that is cut off, or has bytes that are other ones, too many, or missing."""
    if draw.chance(0.2):
        return content[: draw.integer(0, len(content))]
    changed = bytearray(content)
    for _ in range(draw.integer(1, 4)):
        place = draw.integer(0, max(len(changed) - 1, 0))
        what = draw.integer(0, 3)
        if what == 0:
            changed[place : place + 1] = bytes([draw.integer(0, 255)])
        elif what == 1:
            changed[place:place] = bytes(draw.sizes(draw.integer(1, 3), 0, 255))
        elif what == 2:
            del changed[place : place + draw.integer(1, 3)]
        elif changed:
            changed[min(place, len(changed) - 1)] ^= 1 << draw.integer(0, 7)
    return bytes(changed)


def _attribute(model: onnx.ModelProto, draw: Draw) -> None:
    """Change, remove or add an attribute."""
    node = draw.choice(model.graph.node) if model.graph.node else None
    if node is None:
        return
    if not node.attribute or draw.chance(0.25):
        _add_attribute(node, draw)
        return
    entry = draw.choice(node.attribute)
    what = draw.integer(0, 9)
    if what == 0:
        node.attribute.remove(entry)
    elif what == 1:
        entry.name = draw.choice(["axis", "axes", "pads", "strides", *NAMES])
    elif what == 2:
        entry.type = draw.choice(_KINDS)
    elif what == 3:
        node.attribute.append(entry)
    else:
        _change_value(entry, draw)


def _add_attribute(node: onnx.NodeProto, draw: Draw) -> None:
    try:
        names = sorted(onnx.defs.get_schema(node.op_type).attributes)
    except onnx.defs.SchemaError:
        names = []
    name = draw.choice([*names, *names, "axis", "axes", "keepdims", "to"])
    values: Sequence[int | float | str | list[int]] = (
        draw.choice(NEAR), draw.choice(NUMBERS), draw.choice(REALS), draw.choice(TEXTS),
        draw.sizes(draw.integer(1, 4), -1, 3),
    )  # fmt: skip
    node.attribute.append(helper.make_attribute(name, draw.choice(values)))


def _change_value(entry: AttributeProto, draw: Draw) -> None:
    number = draw.choice(NEAR if draw.chance(0.7) else NUMBERS)
    if entry.type == AttributeProto.INT:
        entry.i = number
    elif entry.type == AttributeProto.INTS:
        _change_list(entry, draw, number)
    elif entry.type == AttributeProto.FLOAT:
        entry.f = draw.choice(REALS)
    elif entry.type == AttributeProto.STRING:
        entry.s = draw.choice(TEXTS).encode() if draw.chance(0.95) else b"\xff\xfe"


def _change_list(entry: AttributeProto, draw: Draw, number: int) -> None:
    values = list(entry.ints)
    what = draw.integer(0, 5)
    if what == 0:
        values.append(number)
    elif what == 1 and values:
        values.pop()
    elif what == 2:
        values.reverse()
    elif values:
        values[draw.integer(0, len(values) - 1)] = number
    entry.ints[:] = values


def _shape(model: onnx.ModelProto, draw: Draw) -> None:
    """Change a declared shape or type."""
    values = [*model.graph.input, *model.graph.output]
    if not values:
        return
    kind = draw.choice(values).type.tensor_type
    what = draw.integer(0, 9)
    if what == 0:
        kind.elem_type = draw.choice([*range(26), 99])
    elif what == 1:
        kind.ClearField("shape")
    elif what == 2:
        kind.shape.dim.add().dim_value = draw.choice(NEAR)
    elif what == 3 and kind.shape.dim:
        kind.shape.dim.pop()
    elif what == 4 and kind.shape.dim:
        draw.choice(kind.shape.dim).dim_param = draw.choice(NAMES)
    elif kind.shape.dim:
        draw.choice(kind.shape.dim).dim_value = draw.choice(NEAR if draw.chance(0.85) else NUMBERS)


def _initialiser(model: onnx.ModelProto, draw: Draw) -> None:
    """Change what a constant holds, or what it says that it holds."""
    if not model.graph.initializer:
        return
    tensor = draw.choice(model.graph.initializer)
    what = draw.integer(0, 9)
    if what == 0:
        tensor.data_type = draw.choice([*range(26), 99])
    elif what == 1:
        tensor.dims.append(draw.choice(NEAR))
    elif what == 2 and tensor.dims:
        tensor.dims[draw.integer(0, len(tensor.dims) - 1)] = draw.choice(NEAR if draw.chance(0.8) else NUMBERS)
    elif what == 3:
        tensor.raw_data = damaged_bytes(tensor.raw_data, draw)
    elif what == 4:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    else:
        _other_values(tensor, draw)


def _other_values(tensor: TensorProto, draw: Draw) -> None:
    values = np.array(numpy_helper.to_array(tensor)) if _is_whole(tensor) else np.zeros(0)
    if not values.size or values.dtype.kind not in "iuf":
        return
    if draw.chance(0.25):
        values = values.reshape(-1)[: draw.integer(0, values.size)]
    elif draw.chance(0.2):
        values = values.astype(draw.choice(["int32", "int64", "float32", "float64", "float16"]))
    else:
        limits = np.iinfo(values.dtype) if values.dtype.kind in "iu" else None
        number = draw.choice(NEAR if draw.chance(0.85) else NUMBERS)
        wanted = number if limits is None else min(max(number, int(limits.min)), int(limits.max))
        with np.errstate(over="ignore"):
            values.reshape(-1)[draw.integer(0, values.size - 1)] = wanted
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _is_whole(tensor: TensorProto) -> bool:
    try:
        numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):
        return False
    return True


def _wiring(model: onnx.ModelProto, draw: Draw) -> None:
    """Change what a node reads or produces."""
    node = draw.choice(model.graph.node) if model.graph.node else None
    if node is None:
        return
    known = [value.name for value in model.graph.input] + [tensor.name for tensor in model.graph.initializer]
    known += [name for each in model.graph.node for name in each.output]
    what = draw.integer(0, 7)
    if what == 0 and node.input:
        node.input.pop()
    elif what == 1 and node.input:
        node.input[draw.integer(0, len(node.input) - 1)] = ""
    elif what == 2:
        node.input.append(draw.choice([*known, ""]))
    elif what == 3:
        node.input[:] = list(node.input)[::-1]
    elif what == 4 and node.output:
        node.output[draw.integer(0, len(node.output) - 1)] = draw.choice([*known, *NAMES])
    elif what == 5:
        node.output.append(draw.choice(["more", "", *known]))
    elif node.input and known:
        node.input[draw.integer(0, len(node.input) - 1)] = draw.choice(known)


def _naming(model: onnx.ModelProto, draw: Draw) -> None:
    """Change a name."""
    graph, name = model.graph, draw.choice(NAMES)
    what = draw.integer(0, 4)
    if what == 0 and graph.node:
        draw.choice(graph.node).name = name
    elif what == 1 and graph.initializer:
        draw.choice(graph.initializer).name = name
    elif what == 2 and graph.output:
        graph.output[draw.integer(0, len(graph.output) - 1)].name = name
    elif what == 3 and graph.input:
        draw.choice(graph.input).name = name
    else:
        graph.name = name


def _operator(model: onnx.ModelProto, draw: Draw) -> None:
    """Make a node another operator, of another domain, or of another operator set."""
    if not model.graph.node:
        return
    what = draw.integer(0, 5)
    if what == 0:
        draw.choice(model.graph.node).domain = draw.choice(["ai.onnx", "com.microsoft", "x\x07"])
    elif what <= 2:
        others = [*sorted(GENERATORS), "If", "Loop", "Scan", "Shape", "Size", "NonZero", "Relu6", "x\ny"]
        draw.choice(model.graph.node).op_type = draw.choice(others)
    elif model.opset_import:
        version = draw.integer(7, 25) if draw.chance(0.9) else draw.choice(NUMBERS)
        model.opset_import[0].version = version


def _structure(model: onnx.ModelProto, draw: Draw) -> None:
    """Repeat or remove a node or a constant, or put nodes in another order."""
    graph = model.graph
    what = draw.integer(0, 3)
    if what == 0 and graph.node:
        graph.node.append(draw.choice(graph.node))
    elif what == 1 and graph.node:
        del graph.node[draw.integer(0, len(graph.node) - 1)]
    elif what == 2:
        graph.node.reverse()
    elif graph.initializer:
        del graph.initializer[draw.integer(0, len(graph.initializer) - 1)]


def _border(model: onnx.ModelProto, draw: Draw) -> None:
    """Repeat or remove an input or an output, or let an output be an input or a constant."""
    graph = model.graph
    values = draw.choice([graph.input, graph.output])
    what = draw.integer(0, 2)
    if what == 0 and values:
        values.append(draw.choice(values))
    elif what == 1 and values:
        del values[draw.integer(0, len(values) - 1)]
    elif graph.output:
        given = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
        graph.output[draw.integer(0, len(graph.output) - 1)].name = draw.choice(given or [""])


_MUTATIONS: Sequence[Mutation] = (
    *[_attribute] * 6, *[_shape] * 4, *[_initialiser] * 4, *[_wiring] * 2, *[_operator] * 2, *[_naming] * 2, _structure,
    _border,
)  # fmt: skip

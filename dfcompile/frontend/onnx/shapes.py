"""Shape inference: element type and shape of every value of a draft."""

from collections.abc import Mapping
from typing import TypeAlias

import onnx
from msgspec import Struct
from onnx import helper, numpy_helper, shape_inference

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constants, Draft, copied, needed_for, value_names
from dfcompile.frontend.onnx.element_type import onnx_type, type_of_value
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.known_shapes import right_shapes
from dfcompile.host.printable import one_line
from dfcompile.records import once

# Inference looks into constants only for shapes, axes and the like, which are short.
_LARGEST_VISIBLE_CONSTANT = 1024

# Operators for which ONNX propagates the elements of vectors, as these may be shapes.
_PROPAGATED = frozenset(
    ["Add", "Cast", "Concat", "Gather", "Mul", "Range", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"]
)
_LARGEST_EXTENT = 2**63 - 1  # of a dimension in an ONNX file
_LONGEST_VECTOR = 2**20
# Operators for which ONNX infers nothing, or fails: their result is of the type of their first operand.
_LIKE_FIRST_OPERAND = frozenset(["GroupNormalization", "MeanVarianceNormalization"])


class TensorType(Struct, frozen=True):
    """Element type and shape of a value.

    Attributes:
        dtype: numpy name.
        shape: None for a dimension that is not known; None altogether if not even the rank is.
    """

    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def known_shape(self) -> tuple[int, ...] | None:
        """The shape if every dimension is known."""
        if self.shape is None or None in self.shape:
            return None
        return self.shape  # type: ignore[return-value]  # no dimension is unknown


Types: TypeAlias = Mapping[str, TensorType]  # by name of the value


def inferred_graph(proto: onnx.ModelProto, *, strict: bool = False, follow: bool = False) -> onnx.GraphProto:
    """Return the graph of a model with the types and shapes that ONNX infers.

    Args:
        proto: the model.
        strict: whether a contradiction is an error; else ONNX leaves the value without a shape.
        follow: whether ONNX propagates elements of vectors that may be shapes.

    Raises:
        UserError: ONNX's inference failed at an operand without elements, or ran out of memory.
        shape_inference.InferenceError: the model contradicts itself.
        ValueError: ONNX cannot read the model.
    """
    try:
        return shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict, data_prop=follow).graph
    except IndexError as error:
        fault = "an operand has no elements against those that its node reads, as ONNX infers shapes"
        raise UserError(f"model: {fault}") from error
    except MemoryError as error:
        fault = "sizes in it are so large that inferring its shapes needs more memory than there is"
        raise UserError(f"model: {fault}") from error


def infer_types(draft: Draft) -> Types:
    """Return the type of every value whose element type ONNX can infer.

    Raises:
        UserError: a value of the model is no dense tensor; or operands do not fit together, which ONNX reports for some
            operators.
    """
    return once(draft, _inferred_types)


def infer_consistent_types(draft: Draft) -> Types:
    """Return the same if ONNX finds no contradiction.

    Raises:
        UserError: it finds one.
    """
    return _inferred_types(draft, strict=True)


def _inferred_types(draft: Draft, *, strict: bool = False) -> Types:
    proto = checkable(draft)
    for node in proto.graph.node:
        if node.op_type in _LIKE_FIRST_OPERAND:
            stand_in(node, node.input[0])
    for output in proto.graph.output:
        # Declared output shapes may belong to other input shapes than those the user gave.
        if output.type.tensor_type.elem_type:
            output.type.tensor_type.ClearField("shape")
        else:
            output.ClearField("type")
    follow = not _has_long_vectors(proto)
    values = value_names(proto.graph.node)
    stand_ins: set[str] = set()
    while True:
        types = _inferred(proto, draft, strict=strict, follow=follow)
        corrected = _correct(proto, types, values, draft.constants)
        if not corrected:
            return {name: known for name, known in types.items() if name not in stand_ins}
        stand_ins.update(corrected)


def _inferred(proto: onnx.ModelProto, draft: Draft, *, strict: bool, follow: bool) -> dict[str, TensorType]:
    """Return the types that ONNX infers, and those of constants."""
    try:
        graph = inferred_graph(proto, strict=strict, follow=follow)
    except (shape_inference.InferenceError, ValueError) as error:
        raise UserError(_explained(str(error))) from error
    types = {name: TensorType(str(value.dtype), value.shape) for name, value in draft.constants.items()}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.name not in types and value.type.WhichOneof("value") is not None:
            try:
                types[value.name] = TensorType(type_of_value(value, f"value {value.name!r}"), shape_of(value.type))
            except UserError:
                ends = (end.name for end in (*proto.graph.input, *proto.graph.output))
                if value.name in needed_for(ends, proto.graph.node):
                    raise  # other values, on which no output depends, may be of any type
    return types


def _correct(proto: onnx.ModelProto, types: Types, values: set[str], constants: Constants) -> tuple[str, ...]:
    """Correct results whose shapes ONNX infers wrong, as `right_shapes` knows; return names of the stand-ins.

    ``y, i = MaxPool(x)`` becomes ``y = Identity(s); i = Identity(t)``, where the stand-ins ``s`` and ``t`` are new
    inputs of the correct shapes.
    """
    stand_ins: list[str] = []
    nodes: list[onnx.NodeProto] = []
    for node in proto.graph.node:
        operands = tuple(types[name].known_shape if name in types else None for name in node.input)
        results = {
            name: (types[name], shape)
            for name, shape in zip(node.output, right_shapes(node, operands, constants), strict=False)
            if name in types and shape is not None
        }
        if all(inferred.shape == shape for inferred, shape in results.values()):
            nodes.append(node)
            continue
        rest = [name for name in node.output if name and name not in results]
        if rest:
            nodes.append(copied(node, outputs=[name if name in rest else "" for name in node.output]))
        for output, (inferred, shape) in results.items():
            largest = max(shape, default=0)
            if largest > _LARGEST_EXTENT:
                extent = f"node {node.name!r}: the result of {node.op_type} has an extent of {largest}"
                raise UserError(f"{extent} against at most {_LARGEST_EXTENT}")
            name = free_name(f"{output}.stand-in", values)
            proto.graph.input.append(helper.make_tensor_value_info(name, onnx_type(inferred.dtype), shape))
            nodes.append(helper.make_node("Identity", [name], [output], node.name))
            stand_ins.append(name)
    if stand_ins:
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
    return tuple(stand_ins)


def _has_long_vectors(proto: onnx.ModelProto) -> bool:
    """Whether some vector is so long that propagating its elements would take ONNX forever."""
    nodes = [node for node in proto.graph.node if node.op_type in _PROPAGATED]
    if not nodes:
        return False
    try:
        graph = inferred_graph(proto)
    except (shape_inference.InferenceError, ValueError):
        return False  # `_inferred` reports the error
    names = value_names(nodes)
    values = (*graph.input, *graph.value_info, *graph.output)
    shapes = [shape_of(value.type) for value in values if value.name in names]
    return any(shape is not None and len(shape) == 1 and (shape[0] or 0) > _LONGEST_VECTOR for shape in shapes)


def stand_in(node: onnx.NodeProto, value: str) -> None:
    """Make a node an Identity of a value, in place."""
    node.op_type = "Identity"
    node.input[:] = [value]
    del node.attribute[:]


def checkable(draft: Draft) -> onnx.ModelProto:
    """Return the draft as a model for ONNX's own tools: large constants are inputs."""
    proto = onnx.ModelProto()
    proto.CopyFrom(draft.proto)
    for name, value in draft.constants.items():
        if value.size <= _LARGEST_VISIBLE_CONSTANT:
            proto.graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            proto.graph.input.append(helper.make_tensor_value_info(name, onnx_type(str(value.dtype)), value.shape))
    return proto


def shape_of(kind: onnx.TypeProto) -> tuple[int | None, ...] | None:
    """Return the shape of a type; None where a dimension, or the whole shape, is not known."""
    if not kind.tensor_type.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim)


def _explained(message: str) -> str:
    """Turn ONNX's ``[ShapeInferenceError] … (op_type:Conv, node name: c): [ShapeInferenceError] why`` into ours."""
    line = one_line(message).replace("[ShapeInferenceError] ", "").replace("[TypeInferenceError] ", "")
    if "node name: " not in line:
        return f"model: {line}"
    node, _, why = line.partition("node name: ")[2].partition("): ")
    operator = line.partition("op_type:")[2].partition(",")[0]
    return f"node {node!r}: {operator}: {why[:1].lower()}{why[1:]}"

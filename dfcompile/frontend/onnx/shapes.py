"""Shape inference: element type and shape of every value of a draft."""

from collections.abc import Mapping

import onnx
from msgspec import Struct
from onnx import helper, numpy_helper, shape_inference

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.einsum_result import einsum_result
from dfcompile.frontend.onnx.element_type import onnx_type, type_of_value
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.inference import inferred_graph
from dfcompile.frontend.onnx.one_line import one_line
from dfcompile.frontend.onnx.operand_results import cache_results, operand_result
from dfcompile.frontend.onnx.window_results import window_result

# Inference looks into constants only for shapes, axes and the like, which are short.
_LARGEST_VISIBLE_CONSTANT = 1024

# Whose vectors ONNX follows element by element: those that they make, and those that they read.
_FOLLOWED = frozenset(
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
        if self.shape is None:
            return None
        known = tuple(size for size in self.shape if size is not None)
        return known if len(known) == len(self.shape) else None


def infer_types(draft: Draft, *, strict: bool = False) -> Mapping[str, TensorType]:
    """Return the type of every value whose element type ONNX can infer.

    Raises:
        UserError: a value of the model is no dense tensor; with ``strict``, or where ONNX does so anyway: operands do
            not fit together.
    """
    proto = checkable(draft)
    for node in proto.graph.node:
        if node.op_type in _LIKE_FIRST_OPERAND:
            stand_in(node, node.input[0])
    for output in proto.graph.output:
        # What is declared may stand for other input shapes than those that were given.
        if output.type.tensor_type.elem_type:
            output.type.tensor_type.ClearField("shape")
        else:
            output.ClearField("type")
    follow = not _has_long_vectors(proto)
    values = {name for node in proto.graph.node for name in (*node.input, *node.output)}
    stand_ins: set[str] = set()
    while True:
        types = _inferred(proto, draft, strict=strict, follow=follow)
        corrected = _correct(proto, types, values, draft.constants)
        if not corrected:
            return {name: known for name, known in types.items() if name not in stand_ins}
        stand_ins.update(corrected)


def _inferred(proto: onnx.ModelProto, draft: Draft, *, strict: bool, follow: bool) -> dict[str, TensorType]:
    try:
        graph = inferred_graph(proto, strict=strict, follow=follow)
    except (shape_inference.InferenceError, ValueError) as error:
        raise UserError(_explained(str(error))) from error
    types = {name: TensorType(str(value.dtype), value.shape) for name, value in draft.constants.items()}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.name not in types and value.type.WhichOneof("value") is not None:
            try:
                types[value.name] = TensorType(type_of_value(value, f"value {value.name!r}"), _shape(value))
            except UserError:
                if value.name in _needed(proto):
                    raise
    return types


def _needed(proto: onnx.ModelProto) -> set[str]:
    """Return the values that outputs of the model depend on."""
    found = {output.name for output in proto.graph.output} | {value.name for value in proto.graph.input}
    for node in reversed(proto.graph.node):
        if not found.isdisjoint(node.output):
            found.update(node.input)
    return found


def _correct(
    proto: onnx.ModelProto, types: Mapping[str, TensorType], values: set[str], constants: Mapping[str, Constant]
) -> tuple[str, ...]:
    """Put our shapes in the place of ONNX's where they differ; return the stand-ins.

    ``y, i = MaxPool(x)`` becomes ``y = Identity(s); i = Identity(t)``, where the stand-ins ``s`` and ``t`` are inputs
    of the shapes that are right.
    """
    stand_ins: list[str] = []
    nodes: list[onnx.NodeProto] = []
    for node in proto.graph.node:
        results = {
            name: (types[name], shape)
            for name, shape in zip(node.output, _right_shapes(node, types, constants), strict=False)
            if name in types and shape is not None
        }
        if all(found.shape == shape for found, shape in results.values()):
            nodes.append(node)
            continue
        rest = [name for name in node.output if name and name not in results]
        if rest:
            kept = onnx.NodeProto()
            kept.CopyFrom(node)
            kept.output[:] = [name if name in rest else "" for name in node.output]
            nodes.append(kept)
        for output, (found, shape) in results.items():
            largest = max(shape, default=0)
            if largest > _LARGEST_EXTENT:
                raise UserError(
                    f"node {node.name!r}: the result of {node.op_type} has an extent of {largest} against at most "
                    f"{_LARGEST_EXTENT}"
                )
            name = free_name(f"{output}.stand-in", values)
            proto.graph.input.append(helper.make_tensor_value_info(name, onnx_type(found.dtype), shape))
            nodes.append(helper.make_node("Identity", [name], [output], node.name))
            stand_ins.append(name)
    if stand_ins:
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
    return tuple(stand_ins)


def _right_shapes(
    node: onnx.NodeProto, types: Mapping[str, TensorType], constants: Mapping[str, Constant]
) -> tuple[tuple[int, ...] | None, ...]:
    """Return the shapes of a node's results as far as we know them better than ONNX; None: we do not."""
    operands = tuple(types[name].known_shape if name in types else None for name in node.input)
    shape = window_result(node, operands) or einsum_result(node, operands) or operand_result(node, operands, constants)
    return (shape, shape) if shape is not None else cache_results(node, operands)


def _has_long_vectors(proto: onnx.ModelProto) -> bool:
    """Whether following the elements of vectors, any of which might be a shape, would take ONNX forever."""
    followed = [node for node in proto.graph.node if node.op_type in _FOLLOWED]
    if not followed:
        return False
    try:
        graph = inferred_graph(proto)
    except (shape_inference.InferenceError, ValueError):
        return False  # the inference proper says what is wrong
    names = {name for node in followed for name in (*node.input, *node.output)}
    values = (*graph.input, *graph.value_info, *graph.output)
    shapes = [_shape(value) for value in values if value.name in names]
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


def _shape(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in value.type.tensor_type.shape.dim
    )


def _explained(message: str) -> str:
    """Turn ONNX's ``[ShapeInferenceError] … (op_type:Conv, node name: c): [ShapeInferenceError] why`` into ours."""
    line = one_line(message)
    if "node name: " not in line:
        return f"model: {line.replace('[ShapeInferenceError] ', '').replace('[TypeInferenceError] ', '')}"
    node, _, why = line.partition("node name: ")[2].partition("): ")
    operator = line.partition("op_type:")[2].partition(",")[0]
    why = why.replace("[ShapeInferenceError] ", "").replace("[TypeInferenceError] ", "")
    return f"node {node!r}: {operator}: {why[:1].lower()}{why[1:]}"

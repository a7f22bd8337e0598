"""From an ONNX model to a draft: functions inlined, constants apart, dimensions of the inputs fixed."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import onnx
from onnx import checker, inliner, numpy_helper

from dfcompile.errors import UserError, nearest
from dfcompile.frontend.onnx.domains import add_nodes
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.element_type import numpy_name, type_of_value
from dfcompile.frontend.onnx.function_calls import check_inlined_size
from dfcompile.frontend.onnx.function_defaults import with_function_defaults
from dfcompile.frontend.onnx.one_line import one_line
from dfcompile.frontend.onnx.subgraphs import subgraphs

INITIALIZERS_ALONE = 4  # form of files since which initializers need not stand among the inputs

NO_WEIGHTS: Mapping[str, Constant] = MappingProxyType({})
NO_DIMS: Mapping[str, int] = MappingProxyType({})


def read_draft(
    model: onnx.ModelProto,
    shapes: Mapping[str, tuple[int, ...]],
    weights: Mapping[str, Constant] = NO_WEIGHTS,
    dims: Mapping[str, int] = NO_DIMS,
) -> Draft:
    """Return the draft of a model.

    Args:
        model: with its external data loaded.
        shapes: shape of an input by its name, for symbolic dimensions.
        weights: initializers that stand beside the model.
        dims: size of a symbolic dimension by its name.

    Raises:
        UserError: a constant or input cannot be held, or a dimension of an input is neither known nor given.
    """
    if model.functions:
        model = _inlined(model)
    _check_names(model)
    graph = model.graph
    if graph.sparse_initializer:
        raise UserError("model: sparse initializers against dense ones (store them as dense tensors)")
    constants: dict[str, Constant] = dict(weights)
    for tensor in graph.initializer:
        if tensor.name in constants:
            raise UserError(f"initializer {tensor.name!r}: stands twice in the model")
        constants[tensor.name] = constant_of(tensor)
    # Files of the first ONNX versions list each initializer as an input as well.
    inputs = [value for value in graph.input if value.name not in constants]
    proto = onnx.ModelProto(ir_version=max(model.ir_version, INITIALIZERS_ALONE))
    proto.opset_import.extend(model.opset_import)
    proto.graph.name = graph.name or "graph"
    add_nodes(proto, graph.node)
    proto.graph.output.extend(graph.output)
    proto.graph.input.extend(_fixed(inputs, shapes, dims))
    return Draft(proto, constants)


def _check_names(model: onnx.ModelProto) -> None:
    """Refuse what a damaged file can hold: names that are no UTF-8, which reach Python as bytes."""
    names: list[object] = [entry.domain for entry in model.opset_import]
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        names.append(graph.name)
        for node in graph.node:
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [attribute.name for attribute in node.attribute]
            waiting += subgraphs(node)
        names += [tensor.name for tensor in graph.initializer]
        for value in (*graph.input, *graph.output):
            names += [value.name, *(dim.dim_param for dim in value.type.tensor_type.shape.dim)]
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"model: a name is {name!r} against UTF-8 text (is the file damaged?)")


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        check_inlined_size(model)
        return inliner.inline_local_functions(with_function_defaults(model))
    except UserError as error:
        raise UserError(f"model: its functions cannot be inlined: {error}") from error
    except (RuntimeError, ValueError, checker.ValidationError) as error:
        raise UserError(f"model: its functions cannot be inlined: {one_line(error)}") from error


def constant_of(tensor: onnx.TensorProto) -> Constant:
    """Return the value of an initializer, read-only.

    Raises:
        UserError: it cannot be held.
    """
    where = f"initializer {tensor.name!r}"
    numpy_name(tensor.data_type, where)
    if any(size < 0 for size in tensor.dims):
        raise UserError(f"{where}: a size of {min(tensor.dims)} against no less than 0")
    try:
        value = np.asarray(numpy_helper.to_array(tensor))
    except (OverflowError, ValueError, TypeError) as error:
        raise UserError(f"{where}: {one_line(error)}") from error
    value.flags.writeable = False
    return value


def _fixed(
    inputs: list[onnx.ValueInfoProto],
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
) -> tuple[onnx.ValueInfoProto, ...]:
    names = [value.name for value in inputs]
    for name in shapes:
        if name not in names:
            raise UserError(f"shape {name!r}: no input of that name{nearest(name, names)}")
    symbols = dict.fromkeys(dim.dim_param for value in inputs for dim in value.type.tensor_type.shape.dim)
    for name in dims:
        if name not in symbols:
            known = [symbol for symbol in symbols if symbol]
            raise UserError(f"dimension {name!r}: no input has a symbolic one of that name{nearest(name, known)}")
    bound = dict(dims)
    for value in inputs:
        _bind(value, shapes, bound)
    return tuple(_with_shape(value, _known_shape(value, shapes, bound)) for value in inputs)


def _bind(value: onnx.ValueInfoProto, shapes: Mapping[str, tuple[int, ...]], bound: dict[str, int]) -> None:
    """Check a given shape against the model and note what its symbols stand for."""
    type_of_value(value, f"input {value.name!r}")
    given = shapes.get(value.name)
    if given is None or not value.type.tensor_type.HasField("shape"):
        return
    dims = value.type.tensor_type.shape.dim
    where = f"input {value.name!r}"
    if len(given) != len(dims):
        raise UserError(f"{where}: the given shape has {len(given)} dimensions against {len(dims)} in the model")
    for position, (size, dim) in enumerate(zip(given, dims, strict=True)):
        if dim.WhichOneof("value") == "dim_value":
            if dim.dim_value > 0 and size != dim.dim_value:
                raise UserError(
                    f"{where}: dimension {position} is given as {size} against {dim.dim_value} in the model"
                )
        elif dim.dim_param and bound.setdefault(dim.dim_param, size) != size:
            raise UserError(f"{where}: {dim.dim_param!r} is given as {size} against {bound[dim.dim_param]} elsewhere")


def _known_shape(
    value: onnx.ValueInfoProto,
    shapes: Mapping[str, tuple[int, ...]],
    bound: Mapping[str, int],
) -> tuple[int, ...]:
    where = f"input {value.name!r}"
    given = shapes.get(value.name)
    if given is not None:
        for position, size in enumerate(given):
            if size <= 0:
                raise UserError(f"{where}: dimension {position} is given as {size} against a positive size")
        return given
    if not value.type.tensor_type.HasField("shape"):
        raise UserError(f"{where}: its shape is not known (give --shape {value.name}=1x3x224x224, say)")
    dims = value.type.tensor_type.shape.dim
    hint = "x".join(str(dim.dim_value if dim.dim_value > 0 else bound.get(dim.dim_param, 1)) for dim in dims)
    sizes = []
    for position, dim in enumerate(dims):
        if dim.WhichOneof("value") != "dim_value":
            if dim.dim_param not in bound:
                name = repr(dim.dim_param) if dim.dim_param else "not named"
                by_name = f"--dim {dim.dim_param}=1, or " if dim.dim_param else ""
                raise UserError(
                    f"{where}: dimension {position} is symbolic ({name}) against a number "
                    f"(give {by_name}--shape {value.name}={hint}, say)"
                )
            sizes.append(bound[dim.dim_param])
        elif dim.dim_value <= 0:
            raise UserError(
                f"{where}: dimension {position} is {dim.dim_value} against a positive size "
                f"(give --shape {value.name}={hint}, say)"
            )
        else:
            sizes.append(dim.dim_value)
    return tuple(sizes)


def _with_shape(value: onnx.ValueInfoProto, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, shape)

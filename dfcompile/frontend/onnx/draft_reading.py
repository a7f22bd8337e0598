"""From an ONNX model to a draft: functions inlined, constants dense and apart, sizes and values of inputs as given."""

from collections.abc import Iterable
from math import prod

import numpy as np
import onnx
from onnx import AttributeProto, checker, inliner, numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.onnx.draft import Constant, Constants, Draft, graphs_of, nodes_of, read_only, with_inner_nodes
from dfcompile.frontend.onnx.element_type import numpy_name
from dfcompile.frontend.onnx.function_calls import check_inlined_size, with_function_defaults
from dfcompile.frontend.onnx.known_shapes import require
from dfcompile.frontend.onnx.model_inputs import model_inputs
from dfcompile.frontend.onnx.one_line import one_line
from dfcompile.frontend.onnx.schemas import add_nodes

INITIALIZERS_ALONE = 4  # form of files since which initializers need not stand among the inputs

NO_WEIGHTS: Constants = {}
_NO_OPTIONS = ReadOptions()

_MOST_ELEMENTS = 2**28  # of all sparse constants of a model, zeros included: a few bytes can ask for terabytes


def read_draft(model: onnx.ModelProto, options: ReadOptions = _NO_OPTIONS, weights: Constants = NO_WEIGHTS) -> Draft:
    """Return the draft of a model.

    Args:
        model: with its external data loaded.
        options: sizes and values of inputs.
        weights: initializers that stand beside the model.

    Raises:
        UserError: a constant or input cannot be held, or what is given for the inputs does not fit them.
    """
    model = with_dense_constants(model)
    if model.functions:
        model = _inlined(model)
    _check_names(model)
    graph = model.graph
    read = {value.name for each in graphs_of(model) for value in each.output}
    read.update(name for node in with_inner_nodes(graph.node) for name in node.input)
    constants: dict[str, Constant] = dict(weights)
    for tensor in graph.initializer:
        require(tensor.name not in constants, f"initializer {tensor.name!r}: stands twice in the model")
        if tensor.data_type == onnx.TensorProto.STRING and tensor.name not in read:
            continue
        constants[tensor.name] = constant_of(tensor)
    # Files of the first ONNX versions list each initializer as an input as well.
    still_open, known = model_inputs([value for value in graph.input if value.name not in constants], options)
    proto = onnx.ModelProto(ir_version=max(model.ir_version, INITIALIZERS_ALONE))
    proto.opset_import.extend(model.opset_import)
    proto.graph.name = graph.name or "graph"
    add_nodes(proto, graph.node)
    proto.graph.output.extend(graph.output)
    proto.graph.input.extend(still_open)
    return Draft(proto, {**constants, **known})


def with_dense_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose sparse initializers and constants are dense; one that has none itself.

    Raises:
        UserError: places and values do not fit together, or there are too many elements.
    """
    if not _sparse_values(model) and not any(graph.sparse_initializer for graph in graphs_of(model)):
        return model
    dense = onnx.ModelProto()
    dense.CopyFrom(model)
    most = _MOST_ELEMENTS
    for graph in graphs_of(dense):
        for sparse in graph.sparse_initializer:
            graph.initializer.append(_dense(sparse, most))
            most -= prod(sparse.dims)
        del graph.sparse_initializer[:]
    for entry in _sparse_values(dense):
        entry.t.CopyFrom(_dense(entry.sparse_tensor, most))
        most -= prod(entry.sparse_tensor.dims)
        entry.ClearField("sparse_tensor")
        entry.name, entry.type = "value", AttributeProto.TENSOR
    return dense


def _sparse_values(model: onnx.ModelProto) -> list[AttributeProto]:
    """Return the values of sparse Constant nodes."""
    entries = (entry for node in nodes_of(model) if node.op_type == "Constant" for entry in node.attribute)
    return [entry for entry in entries if entry.type == AttributeProto.SPARSE_TENSOR]


def _dense(sparse: onnx.SparseTensorProto, most: int) -> onnx.TensorProto:
    name = sparse.values.name
    where = f"sparse constant {name!r}"
    shape = tuple(sparse.dims)
    if not shape or min(shape) < 0 or prod(shape) > most:
        raise UserError(f"{where}: dimensions {list(shape)} against at most {most} elements in at least one dimension")
    try:
        values, places = np.ravel(numpy_helper.to_array(sparse.values)), numpy_helper.to_array(sparse.indices)
    except (OverflowError, ValueError, TypeError) as error:
        raise UserError(f"{where}: {one_line(error)}") from error
    if places.dtype != np.int64 or places.shape not in ((len(values),), (len(values), len(shape))):
        found = f"{places.dtype} {list(places.shape)}"
        raise UserError(f"{where}: places {found} against int64 [{len(values)}] or [{len(values)}, {len(shape)}]")
    extents = (prod(shape),) if places.ndim == 1 else shape
    by_axis = places.reshape(len(values), len(extents))
    is_inside = ((by_axis >= 0) & (by_axis < np.array(extents))).all()
    require(is_inside, f"{where}: a place outside of {list(shape)}")
    flat = np.ravel_multi_index(tuple(by_axis.T), extents) if len(values) else np.zeros(0, np.int64)
    require((np.diff(flat) > 0).all(), f"{where}: places against ascending ones, each once")
    dense = np.zeros(prod(shape), values.dtype)
    dense[flat] = values
    return numpy_helper.from_array(dense.reshape(shape), name)


def input_names(model: onnx.ModelProto, weights: Iterable[str] = ()) -> list[str]:
    """Return the names of a model's inputs, without those of initializers and weights that stand beside it."""
    constants = {*weights, *(tensor.name for tensor in model.graph.initializer)}
    constants.update(sparse.values.name for sparse in model.graph.sparse_initializer)
    return [value.name for value in model.graph.input if value.name not in constants]


def _check_names(model: onnx.ModelProto) -> None:
    """Refuse what a damaged file can hold: names that are no UTF-8, which reach Python as bytes."""
    names: list[object] = [entry.domain for entry in model.opset_import]
    for node in with_inner_nodes(model.graph.node):
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    for graph in graphs_of(model):
        names += [graph.name, *(tensor.name for tensor in graph.initializer)]
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
        return read_only(np.asarray(numpy_helper.to_array(tensor)))
    except (OverflowError, ValueError, TypeError) as error:
        raise UserError(f"{where}: {one_line(error)}") from error

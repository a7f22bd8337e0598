"""Sparse constants: a list of places and values, which become a tensor like any other."""

from math import prod

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.nodes import graphs_of, nodes_of
from dfcompile.frontend.onnx.one_line import one_line

_MOST_ELEMENTS = 2**28  # of all sparse constants of a model, zeros included: a few bytes can ask for terabytes


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
    if ((by_axis < 0) | (by_axis >= np.array(extents))).any():
        raise UserError(f"{where}: a place outside of {list(shape)}")
    flat = np.ravel_multi_index(tuple(by_axis.T), extents) if len(values) else np.zeros(0, np.int64)
    if (np.diff(flat) <= 0).any():
        raise UserError(f"{where}: places against ascending ones, each once")
    dense = np.zeros(prod(shape), values.dtype)
    dense[flat] = values
    return numpy_helper.from_array(dense.reshape(shape), name)

"""From an ONNX model to a draft: functions inlined, constants dense and apart, sizes and values of inputs as given."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from onnx import AttributeProto, checker, inliner, numpy_helper

from dfcompile.errors import UserError, nearest
from dfcompile.frontend.element_kind import element_kind, integer_limits, largest_real
from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.onnx.draft import Constant, Constants, Draft, graphs_of, nodes_of, read_only, with_inner_nodes
from dfcompile.frontend.onnx.element_type import numpy_name, type_of_value
from dfcompile.frontend.onnx.function_calls import check_inlined_size, with_function_defaults
from dfcompile.frontend.onnx.known_shapes import Shape, require
from dfcompile.frontend.onnx.schemas import add_nodes
from dfcompile.frontend.onnx.shapes import shape_of
from dfcompile.host.printable import one_line
from dfcompile.options import FixedInput, Number

INITIALIZERS_ALONE = 4  # form of files since which initializers need not stand among the inputs

NO_WEIGHTS: Constants = {}
_NO_OPTIONS = ReadOptions()

_MOST_ELEMENTS = 2**28  # of all sparse constants of a model, zeros included: a few bytes can ask for terabytes


def read_draft(model: onnx.ModelProto, options: ReadOptions = _NO_OPTIONS, weights: Constants = NO_WEIGHTS) -> Draft:
    """Return the draft of a model.

    Args:
        model: the model.
        options: sizes and values of inputs.
        weights: initializers that stand beside the model: those of its external data, and others.

    Raises:
        UserError: a constant or input cannot be held, or what is given for the inputs does not fit them.
    """
    model = with_dense_constants(model)
    if model.functions:
        try:
            check_inlined_size(model)
            model = inliner.inline_local_functions(with_function_defaults(model))
        except UserError as error:
            raise UserError(f"model: its functions cannot be inlined: {error}") from error
        except (RuntimeError, ValueError, checker.ValidationError) as error:
            raise UserError(f"model: its functions cannot be inlined: {one_line(error)}") from error
    _check_names(model)
    graph = model.graph
    read = {value.name for each in graphs_of(model) for value in each.output}
    read.update(name for node in with_inner_nodes(graph.node) for name in node.input)
    own = {tensor.name for tensor in graph.initializer}
    constants: dict[str, Constant] = {name: value for name, value in weights.items() if name not in own}
    for tensor in graph.initializer:
        require(tensor.name not in constants, f"initializer {tensor.name!r}: stands twice in the model")
        if tensor.data_type == onnx.TensorProto.STRING and tensor.name not in read:
            continue
        is_beside = tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.name in weights
        constants[tensor.name] = weights[tensor.name] if is_beside else constant_of(tensor)
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
    require(((by_axis >= 0) & (by_axis < np.array(extents))).all(), f"{where}: a place outside of {list(shape)}")
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


def model_inputs(
    values: Sequence[onnx.ValueInfoProto], options: ReadOptions
) -> tuple[list[onnx.ValueInfoProto], Constants]:
    """Return the inputs of a model whose values differ from run to run, all dimensions known, and the others' values.

    The others are those that are fixed or have no elements.

    Raises:
        UserError: a dimension of an input is neither known nor given, a value does not fit its input, or something is
            given that the model has not.
    """
    names = [value.name for value in values]
    for what, given in (("shape", options.shapes), ("input", options.fixed_inputs)):
        for name in given:
            require(name in names, f"{what} {name!r}: no input of that name{nearest(name, names)}")
    symbols = dict.fromkeys(dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim)
    for name in options.dims:
        hint = nearest(name, list(filter(None, symbols)))
        require(name in symbols, f"dimension {name!r}: no input has a symbolic one of that name{hint}")
    shapes, bound = dict(options.shapes), dict(options.dims)
    for value in values:
        _bind(value, shapes, bound)
    for value in values:
        fixed = options.fixed_inputs.get(value.name)
        told = None if fixed is None or value.name in shapes else _told_shape(value, fixed, bound)
        if told is not None:
            shapes[value.name] = told
            _bind(value, shapes, bound)
    still_open, constants = [], {}
    for value in values:
        shape, fixed = _known_shape(value, shapes, bound), options.fixed_inputs.get(value.name)
        if fixed is None and 0 not in shape:
            still_open.append(onnx.helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, shape))
        else:
            constants[value.name] = _input_value(value, shape, fixed)
    return still_open, constants


def _bind(value: onnx.ValueInfoProto, shapes: Mapping[str, Shape], bound: dict[str, int]) -> None:
    """Check a given shape against the model and note what its symbols stand for."""
    where = f"input {value.name!r}:"
    type_of_value(value, where[:-1])
    given, sizes = shapes.get(value.name), shape_of(value.type)
    if given is None or sizes is None:
        return
    found = f"{where} the given shape has {len(given)} dimensions"
    require(len(given) == len(sizes), f"{found} against {len(sizes)} in the model")
    symbols = (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for position, (size, known, symbol) in enumerate(zip(given, sizes, symbols, strict=True)):
        if known is not None:
            is_same = known <= 0 or size == known
            require(is_same, f"{where} dimension {position} is given as {size} against {known} in the model")
        elif symbol:
            other = bound.setdefault(symbol, size)
            require(other == size, f"{where} {symbol!r} is given as {size} against {other} elsewhere")


def _told_shape(value: onnx.ValueInfoProto, fixed: FixedInput, bound: Mapping[str, int]) -> Shape | None:
    """Return the shape that a fixed value has, or gives to the one dimension that is open; None if it tells none."""
    if fixed.shape is not None:
        return fixed.shape
    count, sizes = len(fixed.numbers), _sizes(value, bound)
    if sizes is None:
        return () if count == 1 else (count,)
    rest = prod(size for size in sizes if size is not None)
    if sizes.count(None) != 1 or rest < 1 or count % rest:
        return None
    return tuple(count // rest if size is None else size for size in sizes)


def _sizes(value: onnx.ValueInfoProto, bound: Mapping[str, int]) -> tuple[int | None, ...] | None:
    """Return the shape of an input with what its symbols stand for, None where that is not known."""
    symbols = (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    sizes = shape_of(value.type)
    if sizes is None:
        return None
    return tuple(bound.get(symbol) if size is None else size for size, symbol in zip(sizes, symbols, strict=True))


def _known_shape(value: onnx.ValueInfoProto, shapes: Mapping[str, Shape], bound: Mapping[str, int]) -> Shape:
    where = f"input {value.name!r}:"
    given, sizes = shapes.get(value.name), _sizes(value, bound)
    if given is not None:
        for position, extent in enumerate(given):
            require(extent >= 0, f"{where} dimension {position} is given as {extent} against a size of at least 0")
        return given
    if sizes is None:
        raise UserError(f"{where} its shape is not known (give --shape {value.name}=1x3x224x224, say)")
    hint = "x".join(str(1 if size is None else max(size, 1)) for size in sizes)
    found = []
    for position, (size, dim) in enumerate(zip(sizes, value.type.tensor_type.shape.dim, strict=True)):
        if size is None:
            symbol = repr(dim.dim_param) if dim.dim_param else "not named"
            by_name = f"--dim {dim.dim_param}=1, or " if dim.dim_param else ""
            wanted = f"a number (give {by_name}--shape {value.name}={hint}, say)"
            raise UserError(f"{where} dimension {position} is symbolic ({symbol}) against {wanted}")
        wanted = f"a size of at least 0 (give --shape {value.name}={hint}, say)"
        require(size >= 0 or dim.dim_param, f"{where} dimension {position} is {size} against {wanted}")
        found.append(size)
    return tuple(found)


def _input_value(value: onnx.ValueInfoProto, shape: Shape, fixed: FixedInput | None) -> Constant:
    where = f"input {value.name!r}"
    dtype, count = type_of_value(value, where), prod(shape)
    numbers = () if fixed is None else fixed.numbers
    if fixed is not None and (len(numbers) not in (1, count) or fixed.shape not in (None, shape)):
        given = "" if fixed.shape is None else f" {list(fixed.shape)}"
        raise UserError(f"{where}: {len(numbers)} values{given} against one, or {count} of {list(shape)}")
    for number in numbers:
        if not _fits(number, dtype):
            given = str(number).lower() if type(number) is bool else str(number)
            wanted = "true or false" if element_kind(dtype) == "b" else dtype
            raise UserError(f"{where}: value {given} against {wanted}")
    found = np.array(numbers if count else (), dtype)
    return read_only(np.broadcast_to(found.reshape(()), shape) if found.size == 1 else found.reshape(shape))


def _fits(number: Number, dtype: str) -> bool:
    """Whether an array can hold a number."""
    kind = element_kind(dtype)
    if kind == "b":
        return number in (0, 1)
    if kind in "iu":
        least, most = integer_limits(dtype)
        return type(number) is int and least <= number <= most
    most_real = largest_real(dtype) if kind == "f" else np.inf
    return type(number) is not bool and not most_real < abs(number) < np.inf

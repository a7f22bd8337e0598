"""Model inputs: the shape of each, and the value of those that have one in every run."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import onnx

from dfcompile.errors import UserError, nearest
from dfcompile.frontend.element_kind import element_kind, integer_limits, largest_real
from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.onnx.draft import Constant, Constants, read_only
from dfcompile.frontend.onnx.element_type import type_of_value
from dfcompile.frontend.onnx.known_shapes import Shape, require
from dfcompile.frontend.onnx.shapes import shape_of
from dfcompile.options import FixedInput, Number


def model_inputs(
    values: Sequence[onnx.ValueInfoProto], options: ReadOptions
) -> tuple[list[onnx.ValueInfoProto], Constants]:
    """Return the inputs of a model whose values differ from run to run, all dimensions known, and the others' values.

    The others are those that are fixed or have no elements.

    Raises:
        UserError: a dimension of an input is neither known nor given, a value does not fit its input, or something is
            given that the model has not.
    """
    _check_names(values, options)
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
            kind = value.type.tensor_type.elem_type
            still_open.append(onnx.helper.make_tensor_value_info(value.name, kind, shape))
        else:
            constants[value.name] = _constant(value, shape, fixed)
    return still_open, constants


def _check_names(values: Sequence[onnx.ValueInfoProto], options: ReadOptions) -> None:
    """Refuse what is said of inputs and symbolic dimensions that the model has not."""
    names = [value.name for value in values]
    for what, given in (("shape", options.shapes), ("input", options.fixed_inputs)):
        for name in given:
            require(name in names, f"{what} {name!r}: no input of that name{nearest(name, names)}")
    symbols = dict.fromkeys(dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim)
    for name in options.dims:
        hint = nearest(name, list(filter(None, symbols)))
        require(name in symbols, f"dimension {name!r}: no input has a symbolic one of that name{hint}")


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


def _constant(value: onnx.ValueInfoProto, shape: Shape, fixed: FixedInput | None) -> Constant:
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

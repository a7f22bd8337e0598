"""Model inputs: the shape of each, and the value of those that have one in every run."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.frontend.element_kind import element_kind, integer_limits, largest_real
from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.element_type import type_of_value
from dfcompile.frontend.options import ReadOptions
from dfcompile.options import FixedInput, Number


class ModelInputs(Struct, frozen=True):
    """The inputs of a model.

    Attributes:
        open: those whose values differ from run to run, all dimensions known.
        known: values of the others, which are fixed or have no elements, by name; read-only.
    """

    open: tuple[onnx.ValueInfoProto, ...]
    known: Mapping[str, Constant]


def model_inputs(values: Sequence[onnx.ValueInfoProto], options: ReadOptions) -> ModelInputs:
    """Return the inputs of a model with the sizes and values that are given.

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
            still_open.append(
                onnx.helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, shape)
            )  # fmt: skip
        else:
            constants[value.name] = _constant(value, shape, fixed)
    return ModelInputs(tuple(still_open), constants)


def _check_names(values: Sequence[onnx.ValueInfoProto], options: ReadOptions) -> None:
    """Refuse what is said of inputs and symbolic dimensions that the model has not."""
    names = [value.name for value in values]
    for what, given in (("shape", options.shapes), ("input", options.fixed_inputs)):
        for name in given:
            if name not in names:
                raise UserError(f"{what} {name!r}: no input of that name{nearest(name, names)}")
    symbols = dict.fromkeys(dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim)
    for name in options.dims:
        if name not in symbols:
            known = [symbol for symbol in symbols if symbol]
            raise UserError(f"dimension {name!r}: no input has a symbolic one of that name{nearest(name, known)}")


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


def _told_shape(
    value: onnx.ValueInfoProto, fixed: FixedInput, bound: Mapping[str, int]
) -> tuple[int, ...] | None:  # fmt: skip
    """Return the shape that a fixed value has, or gives to the one dimension that is open; None if it tells none."""
    if fixed.shape is not None:
        return fixed.shape
    count = len(fixed.numbers)
    if not value.type.tensor_type.HasField("shape"):
        return () if count == 1 else (count,)
    sizes = [
        dim.dim_value if dim.HasField("dim_value") else bound.get(dim.dim_param)
        for dim in value.type.tensor_type.shape.dim
    ]
    rest = prod(size for size in sizes if size is not None)
    if sizes.count(None) != 1 or rest < 1 or count % rest:
        return None
    return tuple(count // rest if size is None else size for size in sizes)


def _known_shape(
    value: onnx.ValueInfoProto,
    shapes: Mapping[str, tuple[int, ...]],
    bound: Mapping[str, int],
) -> tuple[int, ...]:
    where = f"input {value.name!r}"
    given = shapes.get(value.name)
    if given is not None:
        for position, size in enumerate(given):
            if size < 0:
                raise UserError(f"{where}: dimension {position} is given as {size} against a size of at least 0")
        return given
    if not value.type.tensor_type.HasField("shape"):
        raise UserError(f"{where}: its shape is not known (give --shape {value.name}=1x3x224x224, say)")
    dims = value.type.tensor_type.shape.dim
    hint = "x".join(
        str(max(dim.dim_value, 1) if dim.HasField("dim_value") else bound.get(dim.dim_param, 1)) for dim in dims
    )
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
        elif dim.dim_value < 0:
            raise UserError(
                f"{where}: dimension {position} is {dim.dim_value} against a size of at least 0 "
                f"(give --shape {value.name}={hint}, say)"
            )
        else:
            sizes.append(dim.dim_value)
    return tuple(sizes)


def _constant(value: onnx.ValueInfoProto, shape: tuple[int, ...], fixed: FixedInput | None) -> Constant:
    where = f"input {value.name!r}"
    dtype, count = type_of_value(value, where), prod(shape)
    numbers = () if fixed is None else fixed.numbers
    if fixed is not None and (len(numbers) not in (1, count) or fixed.shape not in (None, shape)):
        given = "" if fixed.shape is None else f" {list(fixed.shape)}"
        raise UserError(f"{where}: {len(numbers)} values{given} against one, or {count} of {list(shape)}")
    _check_numbers(where, dtype, numbers)
    found = np.array(numbers if count else (), dtype)
    found = np.broadcast_to(found.reshape(()), shape) if found.size == 1 else found.reshape(shape)
    found.flags.writeable = False
    return found


def _check_numbers(where: str, dtype: str, numbers: Iterable[Number]) -> None:
    kind = element_kind(dtype)
    for number in numbers:
        if kind == "b":
            is_fit = number in (0, 1)
        elif kind in "iu":
            least, most = integer_limits(dtype)
            is_fit = type(number) is int and least <= number <= most
        else:
            most_real = largest_real(dtype) if kind == "f" else np.inf
            is_fit = type(number) is not bool and not most_real < abs(number) < np.inf
        if not is_fit:
            given = str(number).lower() if type(number) is bool else number
            raise UserError(f"{where}: value {given} against {'true or false' if kind == 'b' else dtype}")

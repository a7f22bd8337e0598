"""Element types: which of ONNX's a program can hold, and their numpy names."""

from collections.abc import Iterable

import onnx
from onnx import TensorProto, helper

from dfcompile.errors import UserError

_HELD = """
    FLOAT16 BFLOAT16 FLOAT DOUBLE INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL COMPLEX64 COMPLEX128
    FLOAT8E4M3FN FLOAT8E5M2 INT4 UINT4 INT2 UINT2 FLOAT8E4M3FNUZ FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1
"""
_ONNX_TYPES = {
    helper.tensor_dtype_to_np_dtype(number).name: number for number in map(TensorProto.DataType.Value, _HELD.split())
}
_NUMPY_NAMES: dict[int, str] = {number: name for name, number in _ONNX_TYPES.items()}
_SCHEMA_NAMES = dict(zip(_ONNX_TYPES, (f"tensor({held.lower()})" for held in _HELD.split()), strict=True))


def numpy_name(element_type: int, where: str) -> str:
    """Return the numpy name of an ONNX element type.

    Raises:
        UserError: no array of that type can be held; the message starts with ``where``.
    """
    name = _NUMPY_NAMES.get(element_type)
    if name is None:
        names = {number: known.lower() for known, number in TensorProto.DataType.items()}
        found = names.get(element_type, str(element_type))
        raise UserError(f"{where}: element type {found!r} against {', '.join(_ONNX_TYPES)} (cast it in the model)")
    return name


def onnx_type(name: str) -> int:
    """Return the ONNX element type of a numpy name that :func:`numpy_name` gave."""
    return _ONNX_TYPES[name]


def schema_name(name: str) -> str:
    """Return how ONNX's operator schemas write an element type, given its numpy name.

    >>> schema_name("float32"), schema_name("int8")
    ('tensor(float)', 'tensor(int8)')
    """
    return _SCHEMA_NAMES.get(name, f"tensor({name})")


def taken_names(schema_types: Iterable[str]) -> tuple[str, ...]:
    """Return the numpy names of those types of a schema that an array can be of."""
    allowed = frozenset(schema_types)
    return tuple(name for name in _ONNX_TYPES if schema_name(name) in allowed)


def type_of_value(value: onnx.ValueInfoProto, where: str) -> str:
    """Return the numpy name of a tensor value's element type.

    Raises:
        UserError: the value is a sequence, map, optional or sparse tensor, or of a type that cannot be held.
    """
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        found = kind.removesuffix("_type").replace("_", " ") if kind else "nothing"
        raise UserError(f"{where}: {found} against a tensor (only dense tensors can be compiled)")
    return numpy_name(value.type.tensor_type.elem_type, where)

"""Element types: which of ONNX's a program can hold, and their numpy names."""

from collections.abc import Iterable

import onnx
from onnx import TensorProto

from dfcompile.errors import UserError

_NUMPY_NAMES: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.BOOL: "bool",
    TensorProto.COMPLEX64: "complex64",
    TensorProto.COMPLEX128: "complex128",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.INT4: "int4",
    TensorProto.UINT4: "uint4",
    TensorProto.INT2: "int2",
    TensorProto.UINT2: "uint2",
    TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    TensorProto.FLOAT8E8M0: "float8_e8m0fnu",
    TensorProto.FLOAT4E2M1: "float4_e2m1fn",
}
_ONNX_TYPES = {name: number for number, name in _NUMPY_NAMES.items()}
_SCHEMA_NAMES = {
    "float32": "tensor(float)",
    "float64": "tensor(double)",
    "float8_e4m3fn": "tensor(float8e4m3fn)",
    "float8_e5m2": "tensor(float8e5m2)",
    "float8_e4m3fnuz": "tensor(float8e4m3fnuz)",
    "float8_e5m2fnuz": "tensor(float8e5m2fnuz)",
    "float8_e8m0fnu": "tensor(float8e8m0)",
    "float4_e2m1fn": "tensor(float4e2m1)",
}


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

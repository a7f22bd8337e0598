"""External data: tensors of an ONNX model that stand in files beside it, and nowhere else.

Files are mapped into memory: what nobody looks at is never read, however large the weights are.
"""

import math
import mmap
import os
import stat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto

from dfcompile.errors import UserError
from dfcompile.frontend.element_kind import PACKED_BITS
from dfcompile.frontend.onnx.draft import Constant, Constants, graphs_of, nodes_of
from dfcompile.host.printable import reason_of

SPARE_BYTES = 2**26  # that tensors may read in all beyond the sizes of their files: some share a part
_NO_NUMBERS = (TensorProto.UNDEFINED, TensorProto.STRING)


class _Part(NamedTuple):
    """Where a tensor stands."""

    path: Path
    offset: int
    length: int


def mapped_data(model: onnx.ModelProto, folder: Path) -> Constants:
    """Return the initializers of a model's graph that stand in files, by name; read-only views of the mapped files.

    A tensor is as many bytes of a regular file inside of the model's folder, also after links have been followed, as
    its type and dimensions say. No file is read beyond its end, and all tensors together have no more bytes than the
    files (but for a spare part).

    Args:
        model: tensors of which several elements share a byte, and those of inner graphs and attributes, are put into
            it, in place.
        folder: that it stands in.

    Raises:
        UserError: a tensor stands elsewhere, or its file is missing or too short; the message names the tensor.
    """
    tensors = _external(model)
    parts = [_part(tensor, folder) for tensor in tensors]
    sizes = {part.path: part.path.stat().st_size for part in parts}
    asked, held = sum(part.length for part in parts), sum(sizes.values())
    if asked > held + SPARE_BYTES:
        raise UserError(f"external data: tensors of {asked} bytes in all against the {held} bytes of their files")
    files = {path: _mapped(path) for path, size in sizes.items() if size}
    of_graph = {id(tensor) for tensor in model.graph.initializer}
    mapped: dict[str, Constant] = {}
    for tensor, part in zip(tensors, parts, strict=True):
        content = files[part.path][part.offset : part.offset + part.length] if part.length else b""
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if id(tensor) in of_graph and dtype.name not in PACKED_BITS:
            mapped[tensor.name] = np.frombuffer(content, np.uint8).view(dtype).reshape(tensor.dims)
        else:
            _put(tensor, bytes(content))
    return mapped


def with_data(model: onnx.ModelProto, mapped: Constants) -> onnx.ModelProto:
    """Return a model with the tensors in it that are mapped; itself if there are none."""
    if not mapped:
        return model
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    for tensor in whole.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            _put(tensor, mapped[tensor.name].tobytes())
    return whole


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _put(tensor: TensorProto, content: bytes) -> None:
    tensor.raw_data = content
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _part(tensor: TensorProto, folder: Path) -> _Part:
    where = f"tensor {tensor.name!r}"
    keys = {entry.key: entry.value for entry in tensor.external_data}
    path = _path(keys.get("location", ""), folder, where)
    size = path.stat().st_size
    offset = _number(keys, "offset", where)
    kind = tensor.data_type
    if kind in _NO_NUMBERS or kind not in TensorProto.DataType.values():
        raise UserError(f"{where}: external data of type {kind} against numbers")
    if any(extent < 0 for extent in tensor.dims):
        raise UserError(f"{where}: a size of {min(tensor.dims)} against no less than 0")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    expected = -(-math.prod(tensor.dims) * PACKED_BITS.get(dtype.name, 8 * dtype.itemsize) // 8)
    length = _number(keys, "length", where) if "length" in keys else expected
    if length != expected:
        raise UserError(f"{where}: {length} bytes of external data against the {expected} of its type and dimensions")
    if offset + length > size:
        raise UserError(f"{where}: external data up to byte {offset + length} against the {size} of {path.name!r}")
    return _Part(path, offset, length)


def _path(location: str, folder: Path, where: str) -> Path:
    given = f"{where}: external data in {location if len(location) <= 100 else location[:100] + '…'!r}"
    asked = Path(location)
    if not location or asked.is_absolute() or ".." in asked.parts or "\0" in location:
        raise UserError(f"{given} against a file inside of the model's folder")
    try:
        path = (folder / asked).resolve(strict=True)
        is_file = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116  # one look at what is behind all links
    except (OSError, RuntimeError) as error:
        raise UserError(f"{given}: {reason_of(error)}") from error
    if not path.is_relative_to(folder.resolve()):
        raise UserError(f"{given}, a link to a file elsewhere, against one inside of the model's folder")
    if not is_file:
        raise UserError(f"{given} against a regular file")
    return path


def _number(keys: dict[str, str], key: str, where: str) -> int:
    text = keys.get(key, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UserError(f"{where}: {key} {text[:40]!r} of its external data against a whole number")
    return int(text)


def _external(model: onnx.ModelProto) -> list[TensorProto]:
    """Return the tensors of a model that stand in files."""
    tensors = [tensor for graph in graphs_of(model) for tensor in graph.initializer]
    for node in nodes_of(model):
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else attribute.tensors
    return [tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL]

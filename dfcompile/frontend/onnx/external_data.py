"""External data: tensors of an ONNX model that stand in files beside it, and nowhere else."""

import math
import os
import stat
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import TensorProto

from dfcompile.errors import UserError
from dfcompile.frontend.element_kind import PACKED_BITS
from dfcompile.frontend.onnx.draft import graphs_of, nodes_of
from dfcompile.host.reasons import reason_of

SPARE_BYTES = 2**26  # that tensors may read in all beyond the sizes of their files: some share a part
_NO_NUMBERS = (TensorProto.UNDEFINED, TensorProto.STRING)


class _Part(NamedTuple):
    """Where a tensor stands."""

    path: Path
    offset: int
    length: int


def load_external_data(model: onnx.ModelProto, folder: Path) -> None:
    """Put the external data of a model into it.

    A tensor is read from a regular file inside of the model's folder, also after links have been followed, and as many
    bytes as its type and dimensions say. No file is read beyond its end, and all tensors together read no more than
    the files hold (but for a spare part).

    Raises:
        UserError: a tensor stands elsewhere, or its file is missing or too short; the message names the tensor.
    """
    tensors = _external(model)
    parts = [_part(tensor, folder) for tensor in tensors]
    files = {part.path: part.path.stat().st_size for part in parts}
    asked, held = sum(part.length for part in parts), sum(files.values())
    if asked > held + SPARE_BYTES:
        raise UserError(f"external data: tensors of {asked} bytes in all against the {held} bytes of their files")
    for tensor, part in zip(tensors, parts, strict=True):
        with part.path.open("rb") as file:
            file.seek(part.offset)
            tensor.raw_data = file.read(part.length)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def external_files(model: onnx.ModelProto, folder: Path) -> tuple[Path, ...]:
    """Return the files that the external data of a model is in.

    Raises:
        UserError: as `load_external_data`.
    """
    return tuple(dict.fromkeys(_part(tensor, folder).path for tensor in _external(model)))


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

"""The binary form of a canonical DAG: its columns as a NumPy archive (``.npz``), for graphs of millions of nodes.

``head`` has the UTF-8 bytes of a JSON object with ``format``, ``name``, ``kernels``, ``tensors``, ``orders`` as in the
JSON form, and ``scopes``: ``{"scope": "mv", "kernel": …, "origin": …}`` each. The other arrays are the columns of the
graph, one number per node (``kind``, ``node_scope``, ``node_member``) or per edge (``edge_source``, ``edge_target``,
``edge_volume``, ``edge_distinct``, ``edge_element_bytes``, ``edge_order``). A ``kind`` of -1 is a task of whatever kind
its volumes make of it; a ``node_member`` of -1 is the single node of its scope. ``numpy.load`` opens such a file.

Nothing of a file is believed: archives are read array by array, each from its own header, never as pickles, and no more
is allocated than a graph may have.
"""

import io
import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from tokenize import TokenError
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import NO_MEMBER, CanonicalDag, NodeKind
from dfcompile.canonical_dag.forms.json_form import node_record
from dfcompile.canonical_dag.forms.reader import FORMAT, LARGEST_EDGES, LARGEST_NODES, wrong_kind
from dfcompile.canonical_dag.forms.records import reader_of, table_records, top_record
from dfcompile.canonical_dag.forms.reference import shortened
from dfcompile.canonical_dag.forms.runs import scope_run
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError

SIGNATURE = b"PK\x03\x04"  # of a ZIP archive, which a NumPy archive is
ANY_TASK = -1  # in ``kind``

_HEAD = "head"
_LARGEST_HEAD = 2**28  # bytes
_TOP = ("format", "name", "kernels", "tensors", "orders", "scopes")
_SCOPE = ("scope", "kernel", "origin")
_NODE_COLUMNS = ("kind", "node_scope", "node_member")
_EDGE_COLUMNS = ("edge_source", "edge_target", "edge_volume", "edge_distinct", "edge_element_bytes", "edge_order")
_COLUMNS = (*_NODE_COLUMNS, *_EDGE_COLUMNS)
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADER_BYTES = 10_000


Integers: TypeAlias = npt.NDArray[np.integer]


def dag_to_npz(dag: CanonicalDag) -> bytes:
    """Return the binary form; `dag_from_npz` gives the same DAG back."""
    scopes = [node_record(scope_run(dag, number)) for number in range(len(dag.scopes))]
    head = {"format": FORMAT, "name": dag.name, **table_records(dag), "scopes": scopes}
    columns: Mapping[str, Integers] = {name: getattr(dag, name) for name in _COLUMNS}
    written = io.BytesIO()
    text = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), dtype=np.uint8)
    np.savez_compressed(written, allow_pickle=False, **{_HEAD: text}, **columns)
    return written.getvalue()


def dag_from_npz(data: bytes) -> CanonicalDag:
    """Read the binary form.

    Raises:
        UserError: naming the array, the record, or the node or edge that breaks an invariant.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {name: _array(archive, name) for name in _checked_names(archive)}
    except _BROKEN as error:
        raise UserError(f"archive: {shortened(str(error)) or type(error).__name__} against arrays of NumPy") from None
    try:
        head = top_record(arrays.pop(_HEAD).tobytes().decode(), _TOP)
    except UnicodeDecodeError:
        raise UserError("head: other bytes against a UTF-8 text") from None
    reader = reader_of(head)
    scopes = 0
    for scopes, row in enumerate(head.rows("scopes", _SCOPE), start=1):
        kernel, name = row.optional("kernel"), row.text("scope")
        if reader.scope(name, row.where, kernel, row.text("origin", name)) != scopes - 1:
            raise UserError(f"{row.where}: scope {name!r} given twice against once")
    _check(arrays, scopes, len(reader.orders))
    columns = {name: column.astype(np.int64) for name, column in arrays.items()}
    kind = columns["kind"]
    reader.add_node_columns(*(columns[name] for name in _NODE_COLUMNS))
    reader.add_edge_columns(*(columns[name] for name in _EDGE_COLUMNS))
    dag = reader.read()
    for node in np.flatnonzero((kind != ANY_TASK) & (kind != dag.kind)).tolist():
        raise wrong_kind(dag, node, NodeKind(int(kind[node])))
    return dag


_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, struct.error, ValueError, TypeError, KeyError, OverflowError,
    NotImplementedError, RuntimeError, MemoryError, OSError, SyntaxError, TokenError, Warning,
)  # fmt: skip  # what reading a broken archive raises


def _checked_names(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """Return the names of the arrays, each of which is there once.

    Raises:
        UserError: one is missing, unknown, there twice, or packed in a way that NumPy does not.
    """
    expected = (_HEAD, *_COLUMNS)
    found = [entry.filename for entry in archive.infolist()]
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        if name not in expected or name == entry.filename:
            raise UserError(f"archive: {shortened(entry.filename)!r} against {', '.join(expected)}")
        if found.count(entry.filename) > 1:
            raise UserError(f"{name}: given twice against once")
        if entry.compress_type not in _PACKED or entry.flag_bits & 1:
            raise UserError(f"{name}: packed or encrypted otherwise against stored or deflated")
    for name in expected:
        if f"{name}.npy" not in found:
            raise UserError(f"archive: no {name!r} against one")
    return expected


def _array(archive: zipfile.ZipFile, name: str) -> Integers:
    """Return an array of the archive, no more of it than its header says and a graph may have.

    Raises:
        UserError: naming the array.
    """
    most = _LARGEST_HEAD if name == _HEAD else LARGEST_NODES if name in _NODE_COLUMNS else LARGEST_EDGES
    with archive.open(f"{name}.npy") as file:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if np.lib.format.read_magic(file) != (1, 0):
                raise UserError(f"{name}: another version of NumPy's format against 1.0")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=_HEADER_BYTES)
        if len(shape) != 1 or shape[0] < 0 or dtype.kind not in "iu":
            found = f"{shortened(str(dtype))} of shape {shortened(str(shape))}"
            raise UserError(f"{name}: {found} against whole numbers [count]")
        (length,) = shape
        if length > most:
            raise UserError(f"{name}: {length} numbers announced against at most {most}")
        if name == _HEAD and dtype != np.uint8:
            raise UserError(f"{name}: {dtype} against uint8")
        size = length * dtype.itemsize
        data = file.read(size)
        if len(data) != size or file.read(1):  # reading to the end also compares the checksum
            raise UserError(f"{name}: more or less data against {length} numbers of {dtype}")
    return np.frombuffer(data, dtype=dtype)


def _check(columns: Mapping[str, Integers], scopes: int, orders: int) -> None:
    """Check lengths, and that every number is in its range: what the verifier takes for granted of columns."""
    for names in (_NODE_COLUMNS, _EDGE_COLUMNS):
        for name in names:
            if len(columns[name]) != len(columns[names[0]]):
                raise UserError(f"{name}: {len(columns[name])} numbers against {len(columns[names[0]])} in {names[0]}")
    last_node = len(columns["kind"]) - 1
    ranges = {
        "kind": (ANY_TASK, int(max(NodeKind))),
        "node_scope": (0, scopes - 1),
        "node_member": (NO_MEMBER, 2**62),
        **dict.fromkeys(("edge_source", "edge_target"), (0, last_node)),
        **dict.fromkeys(("edge_volume", "edge_distinct"), (1, LARGEST_VOLUME)),
        "edge_element_bytes": (1, 127),
        "edge_order": (0, orders - 1),
    }
    for name, (least, most) in ranges.items():
        outside = (columns[name] < least) | (columns[name] > most)
        if outside.any():
            place = int(np.argmax(outside))
            raise UserError(f"{name}[{place}]: {columns[name][place]} against {least} to {most}")
    family = (columns["kind"] > int(NodeKind.BUFFER)) & (columns["node_member"] != NO_MEMBER)
    if family.any():
        raise UserError(f"kind[{int(np.argmax(family))}]: a member of a family against a single node")

"""The binary form: what is written is read back; of what somebody else wrote nothing is believed."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

from dfcompile.canonical_dag import CanonicalDag, NodeKind, dag_from_npz, dag_to_npz
from dfcompile.canonical_dag.forms.dag_file import read_dag_file
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import gaussian
from tests.strategies import canonical_dags

Arrays = dict[str, npt.NDArray[np.generic]]

WRITTEN = dag_to_npz(gaussian(4, 16, 1))


@given(canonical_dags())
def test_the_same_dag_is_read_back(dag: CanonicalDag) -> None:
    assert dag_from_npz(dag_to_npz(dag)) == dag
    assert dag_to_npz(dag) == dag_to_npz(dag)


def test_content_and_not_the_name_says_which_form(tmp_path: Path) -> None:
    file = tmp_path / "graph.dag"
    file.write_bytes(WRITTEN)

    assert read_dag_file(file) == gaussian(4, 16, 1)


def test_numpy_opens_it_and_what_numpy_wrote_is_read() -> None:
    arrays = unpacked()
    wide = {name: column if name == "head" else column.astype(np.int64) for name, column in arrays.items()}
    kind = arrays["kind"].astype(np.int64)
    wide["kind"] = np.where(kind < int(NodeKind.BUFFER), -1, kind)  # tasks of any kind

    assert dag_from_npz(packed(wide)) == gaussian(4, 16, 1)


def changed(name: str, place: int, value: int) -> Callable[[], bytes]:
    def make() -> bytes:
        arrays = unpacked()
        column = arrays[name].astype(np.int64)
        column[place] = value
        return packed({**arrays, name: column})

    return make


def with_head(**fields: object) -> Callable[[], bytes]:
    def make() -> bytes:
        arrays = unpacked()
        head = {**json.loads(arrays["head"].tobytes()), **fields}
        return packed({**arrays, "head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)})

    return make


def with_array(name: str, column: npt.NDArray[np.generic]) -> Callable[[], bytes]:
    return lambda: packed({**unpacked(), name: column})


def with_header(text: str) -> Callable[[], bytes]:
    """An array whose header says something else than what follows."""

    def make() -> bytes:
        header = text.encode().ljust(117) + b"\n"
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 16
        return repacked({"kind.npy": array})

    return make


def pickled() -> bytes:
    class Harmful:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return pytest.fail, ("a pickle was loaded",)

    written = io.BytesIO()
    np.save(written, np.array([Harmful()] * 10, dtype=object), allow_pickle=True)
    return repacked({"kind.npy": written.getvalue()})


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty archive": (lambda: b"PK\x03\x04", "archive: File is not a zip file"),
    "cut off": (lambda: WRITTEN[:-40], "archive: "),
    "pickle": (pickled, "kind: object of shape (10,) against whole numbers"),
    "no array": (lambda: packed({k: v for k, v in unpacked().items() if k != "kind"}), "archive: no 'kind'"),
    "unknown array": (with_array("size", np.zeros(3)), "archive: 'size.npy' against head, kind"),
    "other file": (lambda: repacked({"readme.txt": b"hello"}), "archive: 'readme.txt' against head"),
    "fractions": (with_array("edge_volume", np.full(12, 1.5)), "edge_volume: float64 of shape (12,) against whole"),
    "table": (with_array("edge_volume", np.ones((12, 2), dtype=np.int64)), "edge_volume: int64 of shape (12, 2)"),
    "short column": (with_array("edge_order", np.zeros(3, dtype=np.int32)), "edge_order: 3 numbers against 12 in"),
    "announced": (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (99000000000,)}"),
                  "kind: 99000000000 numbers announced against at most 10000000"),
    "negative": (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-9,)}"), "kind: int64 of shape"),
    "missing data": (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (90,)}"), "kind: more or less"),
    "more data": (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}"), "kind: more or less"),
    "deep header": (with_header("(" * 100), "archive: "),
    "no header": (lambda: repacked({"kind.npy": b"hello"}), "archive: "),
    "node far away": (changed("edge_target", 3, 99), "edge_target[3]: 99 against 0 to 9"),
    "node from the end": (changed("edge_source", 3, -1), "edge_source[3]: -1 against 0 to 9"),
    "no such order": (changed("edge_order", 0, 5), "edge_order[0]: 5 against 0 to 0"),
    "no such kind": (changed("kind", 2, 9), "kind[2]: 9 against -1 to 7"),
    "no volume": (changed("edge_volume", 1, 0), "edge_volume[1]: 0 against 1 to 281474976710656"),
    "family of marks": (changed("kind", 4, 6), "kind[4]: a member of a family against a single node"),
    "largest number": (with_array("kind", np.full(10, 2**64 - 1, dtype=np.uint64)), f"kind[0]: {2**64 - 1} against -1"),
    "own successor": (changed("edge_target", 0, 0), "edge 'start' -> 'start': a node that follows itself"),
    "another kind": (changed("kind", 1, 3), "node 'pivot[0]': kind source against volume in 16, out"),
    "format": (with_head(format="x"), "format: 'x' against 'dfcompile-dag/1'"),
    "no text": (with_array("head", np.full(9, 255, dtype=np.uint8)), "head: other bytes against a UTF-8 text"),
    "no bytes": (with_array("head", np.zeros(9, dtype=np.int64)), "head: int64 against uint8"),
    "scope twice": (with_head(scopes=[{"scope": "a"}, {"scope": "a"}]), "scopes[1]: scope 'a' given twice"),
    "no scopes": (with_head(scopes=[]), "node_scope[0]: 0 against 0 to -1"),
    "unknown kernel": (with_head(scopes=[{"scope": "a", "kernel": "k"}]), "scopes[0]: scope 'a': unknown kernel"),
    "field": (with_head(nodes=[]), "file: unknown field 'nodes'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_archive_is_refused_in_a_short_line(name: str) -> None:
    make, expected = REFUSED[name]

    with pytest.raises(UserError, match=f"^{re.escape(expected)}") as refused:
        dag_from_npz(make())
    message = str(refused.value)
    assert len(message) < 220
    assert message.isprintable()


@pytest.mark.parametrize("place", range(0, len(WRITTEN), 61))
def test_a_changed_byte_is_a_fault_or_changes_nothing(place: int) -> None:
    data = bytearray(WRITTEN)
    data[place] ^= 0x5A
    try:
        found = dag_from_npz(bytes(data))
    except UserError:
        return
    assert found == gaussian(4, 16, 1)


def test_array_given_twice_is_refused() -> None:
    written = io.BytesIO(WRITTEN)
    with zipfile.ZipFile(written, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("kind.npy", b"")

    with pytest.raises(UserError, match=r"^kind: given twice against once"):
        dag_from_npz(written.getvalue())


def unpacked() -> Arrays:
    with np.load(io.BytesIO(WRITTEN), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def packed(arrays: Arrays) -> bytes:
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    return written.getvalue()


def repacked(files: dict[str, bytes]) -> bytes:
    """Return the archive with other files in it."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(WRITTEN)) as before, zipfile.ZipFile(written, "w") as archive:
        for name in before.namelist():
            if name not in files:
                archive.writestr(name, before.read(name))
        for name, content in files.items():
            archive.writestr(name, content)
    return written.getvalue()

"""What repeats a run: its command, the versions that ran, the hashes of what was read; and files beside its page."""

import hashlib
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

PACKAGES = ("dace", "numpy", "onnx", "pulp")  # whose versions can change a figure


class Provenance(Struct, frozen=True):
    """Where a page comes from.

    Attributes:
        command: that writes it again.
        versions: pairs of a program and its version.
        inputs: pairs of a file and the SHA-256 of what it holds.
    """

    command: str
    versions: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]


def provenance_of(command: str, own_version: str, files: Sequence[Path]) -> Provenance:
    """Return the provenance of a run.

    Args:
        command: as a shell reads it.
        own_version: of dfcompile.
        files: that were named; what is no regular file, such as standard input or a machine's name, has no hash.
    """
    versions = [("dfcompile", own_version), ("python", platform.python_version())]
    versions += [(package, version(package)) for package in PACKAGES]
    inputs = tuple((str(file), _sha256(file)) for file in files if file.is_file())
    return Provenance(command, tuple(versions), inputs)


def subject_of(files: Sequence[Path]) -> str:
    """Return the folder of a model whose file is called as all of them are; else the report's name is as good."""
    return files[0].resolve().parent.name if files and files[0].stem == "model" else ""


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# Of a file by the end of its name; the first that fits.
_OPENED = (
    (".trace.json", "schedule as a trace", "Perfetto (https://ui.perfetto.dev: Open trace file)"),
    (".onnx", "operators, each with its origin as metadata", "Netron (https://netron.app: Open Model)"),
    (".sdfg", "program as an SDFG", "DaCe's viewer (https://spcl.github.io/dace-webclient, or for VS Code)"),
    (".dag", "canonical DAG as text", "any editor, or dfcompile schedule"),
    (".dot", "graph for Graphviz", "dot -Tsvg, or xdot"),
    (".svg", "drawing", "any browser"),
    (".json", "canonical DAG, schedule or trace as JSON", "any editor; a DAG also dfcompile schedule"),
    (".pb", "solved set-up, binary", "dfcompile, or DFModel"),
    (".txt", "text", "any editor"),
)
_SCHEMES = "./"  # in front of a path, so that no name is read as a scheme such as javascript:


class Link(Struct, frozen=True):
    """A file that was written beside a page.

    Attributes:
        name: of the file, from the page's folder.
        address: the same as a page refers to it.
        meaning: what it is.
        opened_with: what shows it.
    """

    name: str
    address: str
    meaning: str
    opened_with: str


def links_of(files: tuple[Path, ...], page: Path) -> tuple[Link, ...]:
    """Return links from a page to files, relative, so that both can be moved together.

    Args:
        files: that were written.
        page: the page's own file.
    """
    return tuple(_link(file, page.absolute().parent) for file in files)


def _link(file: Path, folder: Path) -> Link:
    relative = Path(os.path.relpath(file.absolute(), folder)).as_posix()
    _, meaning, opened_with = next((one for one in _OPENED if relative.endswith(one[0])), ("", "file", ""))
    # Bytes of a name that are no UTF-8 are quoted as they are on the disk.
    return Link(relative, _SCHEMES + quote(os.fsencode(relative)), meaning, opened_with)

"""What repeats a run: its command, the versions that ran, and the hashes of what was read."""

import hashlib
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

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


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

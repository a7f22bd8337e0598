"""Packages of third parties that are installed for the time of a test, without a package manager."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def write_package(folder: Path, name: str, modules: Mapping[str, str], groups: Sequence[str]) -> None:
    """Write a package and its metadata into a folder of packages.

    Args:
        folder: stands on the path of modules.
        name: of the package, of its distribution and of its entry points.
        modules: text by file name.
        groups: of its entry points.
    """
    package = folder / name
    package.mkdir(parents=True)
    for module, text in {"__init__.py": "", **modules}.items():
        (package / module).write_text(text)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("".join(f"[{group}]\n{name} = {name}\n" for group in groups))

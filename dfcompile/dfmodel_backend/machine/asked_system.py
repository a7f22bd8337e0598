"""The machine that is asked for: from a file or, where nothing is said, the canonical one."""

from functools import cache
from pathlib import Path

from dfcompile.dfmodel_backend.machine.system import System


def load_system(system: str | Path | None = None) -> System:
    """Return the machine of a file, or of a name; of nothing the canonical machine.

    Raises:
        UserError: as `dfcompile.dfmodel_backend.machine.system_file.read_system`.
    """
    if system is None:
        return _canonical()
    from dfcompile.dfmodel_backend.machine.system_file import read_system

    return read_system(str(system))


@cache
def _canonical() -> System:
    """Return the machine of our own file, whatever files and packages there are of its name."""
    from importlib.resources import files

    from dfcompile.dfmodel_backend.machine.named_systems import OWN_FOLDER
    from dfcompile.dfmodel_backend.machine.system_file import parse_system

    file = files(OWN_FOLDER).joinpath("canonical.yaml")
    return parse_system(file.read_text(encoding="utf-8"), file.name)

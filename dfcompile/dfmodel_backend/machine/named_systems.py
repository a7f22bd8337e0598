"""Systems that ``--system`` knows by name: the YAML files in our folder and in packages behind entry points."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import ModuleType

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.plugins import Collected, PluginKind, is_own, missing

OWN_FOLDER = "dfcompile.dfmodel_backend.machine.systems"
SUFFIX = ".yaml"


class NamedSystem(Struct, frozen=True):
    """A system file of a package.

    Attributes:
        name: of the file, without its suffix.
        origin: import path of the package.
        file: the file.
    """

    name: str
    origin: str
    file: Traversable

    @property
    def where(self) -> str:
        """What names the file in errors."""
        return self.file.name if is_own(self.origin) else f"{self.origin}:{self.file.name}"


def _systems_in(module: ModuleType, _type: type[NamedSystem]) -> list[NamedSystem]:
    """Return the systems in the folder of a package; a module that is a file alone has none."""
    if not hasattr(module, "__path__"):
        return []
    held = [entry for entry in files(module).iterdir() if entry.name.endswith(SUFFIX)]
    return [NamedSystem(file.name.removesuffix(SUFFIX), module.__name__, file) for file in held]


SYSTEMS = PluginKind("system", NamedSystem, OWN_FOLDER, "dfcompile.systems", values=_systems_in, shown=repr)


@cache
def named_systems() -> Collected[NamedSystem]:
    """Return the systems of this package and of the entry points of ``dfcompile.systems``.

    Raises:
        RegistrationError: two packages have a file of one name; both are named.
    """
    return SYSTEMS.collect()


def find_system(name: str) -> NamedSystem:
    """Return the system of a name.

    Raises:
        UserError: there is none; the message has the nearest name, or what might have had it.
    """
    known = named_systems()
    if name not in known.by_name:
        raise UserError(f"system {name!r}: no such file or known system{missing(name, known.by_name, known.faults)}")
    return known.by_name[name]

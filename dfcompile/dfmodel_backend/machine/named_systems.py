"""Systems that ``--system`` knows by name: the YAML files in our folder and in packages behind entry points."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType, ModuleType

from msgspec import Struct

from dfcompile.errors import RegistrationError, UserError
from dfcompile.plugins import ImportFault, KindListing, is_own, missing
from dfcompile.plugins.kind import modules_behind, own_modules

GROUP = "dfcompile.systems"
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


class NamedSystems(Struct, frozen=True):
    """All systems that are known by name, and the packages that cannot be imported."""

    by_name: Mapping[str, NamedSystem]
    faults: tuple[ImportFault, ...]

    def find(self, name: str) -> NamedSystem:
        """Return the system of a name.

        Raises:
            UserError: there is none; the message has the nearest name, or what might have had it.
        """
        if name not in self.by_name:
            raise UserError(f"system {name!r}: no such file or known system{missing(name, self.by_name, self.faults)}")
        return self.by_name[name]


@cache
def named_systems() -> NamedSystems:
    """Return the systems of this package and of the entry points of ``dfcompile.systems``.

    Raises:
        RegistrationError: two packages have a file of one name; both are named.
    """
    modules, faults = modules_behind((GROUP,))
    found: dict[str, NamedSystem] = {}
    for module in (*own_modules(OWN_FOLDER), *modules):
        for system in _systems_in(module):
            taken = found.setdefault(system.name, system)
            if taken.origin != system.origin:
                raise RegistrationError(
                    f"system {system.name!r}: claimed by {taken.origin!r} and by {system.origin!r} "
                    "(rename one or uninstall one)"
                )
    return NamedSystems(MappingProxyType({name: found[name] for name in sorted(found)}), faults)


def systems_listed() -> KindListing:
    """Return what there is of systems, whatever is wrong with them, for the listing of plug-ins."""
    try:
        found = named_systems()
    except RegistrationError as error:
        return KindListing("systems", (GROUP,), (), modules_behind((GROUP,))[1], str(error))
    named = tuple((system.name, system.origin) for system in found.by_name.values())
    return KindListing("systems", (GROUP,), named, found.faults)


def _systems_in(module: ModuleType) -> list[NamedSystem]:
    """Return the systems in the folder of a package; a module that is a file alone has none."""
    if not hasattr(module, "__path__"):
        return []
    held = [entry for entry in files(module).iterdir() if entry.name.endswith(SUFFIX)]
    return [NamedSystem(file.name.removesuffix(SUFFIX), module.__name__, file) for file in held]

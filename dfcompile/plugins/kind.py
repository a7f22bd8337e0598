"""A kind of plug-in: what its values are, where they are looked for, and what was found."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

from dfcompile.errors import RegistrationError, UserError, nearest
from dfcompile.plugins.faults import ImportFault
from dfcompile.plugins.modules import modules_behind, own_modules, values_in

Value = TypeVar("Value")


class Plugin(Struct, Generic[Value], frozen=True):
    """A collected value and the module it was found in."""

    value: Value
    origin: str  # module path, such as dfcompile.lowering.expansions.matmul


class Collected(Struct, Generic[Value], frozen=True):
    """All values of a kind, and what could not be imported.

    Attributes:
        plugins: in the order of their names.
        by_name: the values.
        faults: modules behind entry points that cannot be imported; nothing of them is there.
    """

    plugins: tuple[Plugin[Value], ...]
    by_name: Mapping[str, Value]
    faults: tuple[ImportFault, ...]

    def find(self, name: str, where: str) -> Value:
        """Return the value of a name.

        Args:
            name: as the user wrote it.
            where: he wrote it, such as ``--partition``.

        Raises:
            UserError: there is none; the message has the nearest name, and what might have offered it.
        """
        if name not in self.by_name:
            cause = self.faults[0].error if self.faults else None
            raise UserError(f"{where} {name!r}: unknown{missing(name, self.by_name, self.faults)}") from cause
        return self.by_name[name]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each module that cannot be imported, for commands that do not need it."""
        return tuple(map(str, self.faults))


class KindListing(Struct, frozen=True):
    """What `dfcompile plugins` shows of a kind.

    Attributes:
        plural: such as ``partitioners``.
        groups: entry-point groups; the first is the one to use.
        plugins: name and origin of each value.
        faults: what could not be imported.
        clash: two modules that claim one name; no value is listed then.
    """

    plural: str
    groups: tuple[str, ...]
    plugins: tuple[tuple[str, str], ...]
    faults: tuple[ImportFault, ...]
    clash: str = ""


class PluginKind(Struct, Generic[Value], frozen=True):
    """A kind of part that packages can add: expansions, passes, partitioners and the like.

    Attributes:
        singular: name of the kind in messages, such as ``partitioner``.
        plural: the same of several, in listings.
        type: of the values. A value that has an attribute ``module`` belongs to that module alone, wherever else it
            is imported.
        package: import path of our own folder of them.
        group: entry-point group, such as ``dfcompile.partitioners``.
        key: what must be unique among the values, and names them.
        older_groups: entry-point groups that are looked at as well.
    """

    singular: str
    plural: str
    type: type[Value]
    package: str
    group: str
    key: Callable[[Value], str]
    older_groups: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """All entry-point groups."""
        return (self.group, *self.older_groups)

    def collect(self) -> Collected[Value]:
        """Return every module-level value of the kind, alone or in a tuple, list, set or dict.

        Looks in all modules below our own package and in every module (or package) behind an entry point. Built-ins
        and third parties take the same path, and importing a plug-in changes nothing anywhere. A module of a third
        party that cannot be imported is a fault and no more; one of ours is a bug, and its error is raised.

        Raises:
            RegistrationError: two modules claim one name; both are named.
        """
        modules, faults = modules_behind(self.groups)
        found: dict[str, Plugin[Value]] = {}
        for module in (*own_modules(self.package), *modules):
            for value in values_in(module, self.type):
                taken = found.setdefault(self.key(value), Plugin(value, module.__name__))
                if taken.value is not value:
                    raise RegistrationError(
                        f"{self.singular} {self.key(value)}: claimed by {taken.origin!r} and by {module.__name__!r} "
                        "(rename one or uninstall one)"
                    )
        plugins = tuple(found[name] for name in sorted(found))
        return Collected(plugins, MappingProxyType({self.key(each.value): each.value for each in plugins}), faults)

    def listed(self) -> KindListing:
        """Return what there is of the kind, whatever is wrong with it."""
        try:
            found = self.collect()
        except RegistrationError as error:
            return KindListing(self.plural, self.groups, (), modules_behind(self.groups)[1], str(error))
        named = tuple((name, plugin.origin) for name, plugin in zip(found.by_name, found.plugins, strict=True))
        return KindListing(self.plural, self.groups, named, found.faults)


def missing(name: str, known: Iterable[str], faults: Iterable[ImportFault]) -> str:
    """Return what to say after the name of something that is not there: the nearest name, or what might have had it."""
    return "".join(f"; {fault}" for fault in faults) or nearest(name, known)

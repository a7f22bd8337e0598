"""A kind of plug-in: what its values are, where they are looked for, what was found, and whose fault an error is."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from msgspec import Struct

from dfcompile.errors import PluginError, RegistrationError, UserError, VerificationError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OWN_PACKAGE = "dfcompile"


class ImportFault(Struct, frozen=True, eq=False):
    """A module behind an entry point that cannot be imported.

    Attributes:
        entry_point: group and name, such as ``dfcompile.expansions:mylab``.
        module: that was being imported, or what the entry point names if that is no module.
        error: that stopped it, with the plug-in's own traceback.
    """

    entry_point: str
    module: str
    error: BaseException

    def __str__(self) -> str:
        return f"entry point {self.entry_point}: cannot import {self.module!r}: {described(self.error)}"


def is_own(origin: str) -> bool:
    """Return whether a module, or something in it, is dfcompile's own.

    >>> is_own("dfcompile.lowering.expansions.matmul"), is_own("dfcompile_extras.matmul")
    (True, False)
    """
    return origin.partition(".")[0] == OWN_PACKAGE


@contextmanager
def faults_of(kind: str, origin: str) -> Iterator[None]:
    """Turn what a plug-in's code raises in the body into a `PluginError` that names it.

    An error that is meant for the user (``UserError``) stays as it is, and so does everything that our own code raises:
    that is a bug of ours.

    Args:
        kind: such as ``expansion``.
        origin: module and name of what is called, such as ``mylab.matmul_rows.rows``.

    Raises:
        PluginError: ``in expansion mylab.matmul_rows.rows: ZeroDivisionError: division by zero``.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # whatever it is, it is the plug-in's
        if is_own(origin):
            raise
        raise PluginError(f"in {kind} {origin}: {described(error)}") from error


@contextmanager
def faults_of_pass(name: str, origin: str) -> Iterator[None]:
    """Name a pass in every error that is raised in the body; see `faults_of`.

    Args:
        name: of the pass, as the user wrote it.
        origin: module and name of its function.

    Raises:
        UserError: of the pass, with ``in pass 'name'`` put before it.
        PluginError: the pass of a third party raised anything else.
        VerificationError: what a pass of ours gave is wrong.
    """
    with faults_of("pass", origin):
        try:
            yield
        except UserError as error:
            raise type(error)(f"in pass {name!r}: {error}") from error
        except VerificationError as error:
            raise VerificationError(f"in pass {name!r}: {error}" if is_own(origin) else str(error)) from error


def name_of(function: object) -> str:
    """Return the name of a function; of any other callable object the name of its class."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def described(error: BaseException) -> str:
    """Return type and text of an error in one line; of one of our own the text, which says it all.

    >>> described(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    text = " ".join(str(error).split())
    if is_own(type(error).__module__):
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name


Value = TypeVar("Value")


def own_modules(package: str) -> list[ModuleType]:
    """Return a package of ours and all modules below it; one that cannot be imported is a bug of ours."""
    modules, faults = _imported(package, "")
    for fault in faults:
        raise fault.error
    return modules


def modules_behind(groups: Sequence[str]) -> tuple[tuple[ModuleType, ...], tuple[ImportFault, ...]]:
    """Return the modules that the entry points of groups name, with all below, and those that cannot be imported."""
    modules: dict[str, ModuleType] = {}
    faults: list[ImportFault] = []
    for group in groups:
        for point in sorted(_installed(_folders()).get(group, ()), key=lambda point: (point.name, point.value)):
            found, broken = _imported(point.value, f"{group}:{point.name}")
            modules.update({module.__name__: module for module in found})
            faults.extend(broken)
    return tuple(modules.values()), tuple(faults)


def _folders() -> tuple[tuple[str, int], ...]:
    """Return the folders in which packages are looked for, with when something was last put there."""
    found = []
    for folder in sys.path:
        with suppress(OSError):
            found.append((folder, Path(folder).stat().st_mtime_ns))
    return tuple(found)


@lru_cache(maxsize=1)
def _installed(folders: tuple[tuple[str, int], ...]) -> Mapping[str, "tuple[EntryPoint, ...]"]:  # noqa: ARG001  # where to look
    """Return the entry points of all packages by group: every kind of plug-in asks, and reading takes milliseconds."""
    from importlib.metadata import entry_points  # which imports what e-mails need

    found = entry_points()
    return {group: tuple(found.select(group=group)) for group in found.groups}


def _imported(name: str, entry_point: str) -> tuple[list[ModuleType], list[ImportFault]]:
    """Import a module and all below it."""
    names, modules, faults = [name], [], []
    while names:
        name = names.pop(0)
        if ":" in name:
            reason = ImportError("an object against a module, in which values are found")
            faults.append(ImportFault(entry_point, name, reason))
            continue
        try:
            module = importlib.import_module(name)
            below = _below(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a third party's module may do anything
            faults.append(ImportFault(entry_point, name, error))
            continue
        modules.append(module)
        names = [*below, *names]
    return modules, faults


def _below(package: ModuleType) -> list[str]:
    """Return the modules right below a package; one called ``__main__`` is a program."""
    found = sorted(module.name for module in pkgutil.iter_modules(getattr(package, "__path__", [])))
    return [f"{package.__name__}.{name}" for name in found if name != "__main__"]


def values_in(module: ModuleType, kind: type[Value]) -> Iterator[Value]:
    """Yield the values of a module, alone or in a collection; what it merely imports belongs to another module."""
    for name, held in sorted(vars(module).items()):
        for value in (held,) if name.startswith("__") else _members(held):
            if isinstance(value, kind) and _defining_module(value, module) == module.__name__:
                yield value


def _members(held: object) -> Iterable[object]:
    match held:
        case dict():
            return held.values()
        case tuple() | list() | set() | frozenset():
            return held
    return (held,)


def _defining_module(value: object, holder: ModuleType) -> str:
    origin = getattr(value, "module", None)
    return origin if isinstance(origin, str) else holder.__name__


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


ValuesIn: TypeAlias = Callable[[ModuleType, type[Value]], Iterable[Value]]


class PluginKind(Struct, Generic[Value], frozen=True):
    """A kind of part that packages can add: expansions, passes, partitioners and the like.

    Attributes:
        singular: name of the kind in messages, such as ``partitioner``.
        type: of the values. A value that has an attribute ``module`` belongs to that module alone, wherever else it
            is imported.
        package: import path of our own folder of them.
        group: entry-point group, such as ``dfcompile.partitioners``.
        plural: name of several in listings, if it is not the one with an s.
        key: what must be unique among the values, and names them.
        older_groups: entry-point groups that are looked at as well.
        values: of the kind in a module.
        shown: how messages show a key.
    """

    singular: str
    type: type[Value]
    package: str
    group: str
    plural: str = ""
    key: Callable[[Value], str] = attrgetter("name")
    older_groups: tuple[str, ...] = ()
    values: ValuesIn[Value] = values_in
    shown: Callable[[str], str] = str

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
            for value in self.values(module, self.type):
                taken = found.setdefault(self.key(value), Plugin(value, module.__name__))
                if taken.value is not value:
                    raise RegistrationError(
                        f"{self.singular} {self.shown(self.key(value))}: claimed by {taken.origin!r} and by "
                        f"{module.__name__!r} (rename one or uninstall one)"
                    )
        plugins = tuple(found[name] for name in sorted(found))
        return Collected(plugins, MappingProxyType({self.key(each.value): each.value for each in plugins}), faults)

    def listed(self) -> KindListing:
        """Return what there is of the kind, whatever is wrong with it."""
        plural = self.plural or f"{self.singular}s"
        try:
            found = self.collect()
        except RegistrationError as error:
            return KindListing(plural, self.groups, (), modules_behind(self.groups)[1], str(error))
        named = tuple((name, plugin.origin) for name, plugin in zip(found.by_name, found.plugins, strict=True))
        return KindListing(plural, self.groups, named, found.faults)


def missing(name: str, known: Iterable[str], faults: Iterable[ImportFault]) -> str:
    """Return what to say after the name of something that is not there: the nearest name, or what might have had it."""
    return "".join(f"; {fault}" for fault in faults) or nearest(name, known)

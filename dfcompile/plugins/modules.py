"""Modules in which plug-ins are looked for, and the values in them."""

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from dfcompile.plugins.faults import ImportFault

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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

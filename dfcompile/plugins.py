"""Finds plug-ins: values of one type in our own folders and behind entry points of other packages."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from dfcompile.errors import RegistrationError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Plugin(Generic[Value]):
    """A collected value and the module it was found in."""

    value: Value
    origin: str  # module path, such as dfcompile.lowering.expansions.matmul


def collect(
    kind: type[Value],
    package: str,
    group: str,
    key: Callable[[Value], str],
) -> tuple[Plugin[Value], ...]:
    """Return every module-level value of type ``kind``, sorted by origin within key order.

    Looks in all modules below ``package`` and in every module (or package) that an entry point of ``group`` names.
    Built-ins and third parties take the same path, and importing a plug-in changes nothing anywhere.

    Args:
        kind: type of the values to collect.
        package: import path of our own folder of plug-ins.
        group: entry-point group, such as ``dfcompile.lowering``.
        key: what must be unique among the values; its text names the value in errors.

    Raises:
        RegistrationError: two modules claim one key (both are named), or an entry point cannot be imported.
    """
    found: dict[str, Plugin[Value]] = {}
    for module in _modules(package, group):
        for value in _values(module, kind):
            taken = found.setdefault(key(value), Plugin(value, module.__name__))
            if taken.value is not value:
                raise RegistrationError(
                    f"{kind.__name__.lower()} {key(value)}: claimed by {taken.origin!r} and by {module.__name__!r} "
                    "(rename one or uninstall one)"
                )
    return tuple(sorted(found.values(), key=lambda plugin: key(plugin.value)))


def _values(module: ModuleType, kind: type[Value]) -> Iterator[Value]:
    """Yield the values of a module, alone or in a tuple; what it merely imports belongs to another module."""
    for name, held in sorted(vars(module).items()):
        for value in held if isinstance(held, tuple) and not name.startswith("__") else (held,):
            if isinstance(value, kind) and _defining_module(value, module) == module.__name__:
                yield value


def _defining_module(value: object, holder: ModuleType) -> str:
    origin = getattr(value, "module", None)
    return origin if isinstance(origin, str) else holder.__name__


def _modules(package: str, group: str) -> Iterator[ModuleType]:
    yield from _submodules(importlib.import_module(package))
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        yield from _submodules(_load(point, group))


def _submodules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    found = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
    for name in sorted(module.name for module in found):
        yield importlib.import_module(name)


def _load(point: EntryPoint, group: str) -> ModuleType:
    try:
        return importlib.import_module(point.value)
    except ImportError as error:
        raise RegistrationError(f"entry point {group}:{point.name}: cannot import {point.value!r}: {error}") from error

"""Passes: named rewrites that take options; what those of programs and those of canonical DAGs share."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self, TypeAlias

from msgspec import Struct, field

from dfcompile.plugins.faults import name_of
from dfcompile.plugins.settings import Call, Setting, SettingValue, values_of
from dfcompile.records import replace

Rewrite: TypeAlias = Callable[..., object]


class Pass(Struct, frozen=True):
    """A named rewrite; a value, found by the collector.

    Attributes:
        name: as the user writes it in ``--passes``.
        rewrite: the function or frozen dataclass that was decorated; the function, or an instance of the class, takes
            what is rewritten and returns the same kind of thing: its argument itself if nothing changed.
        source: citation key of where it comes from.
        module: where it is defined.
        settings: options that the user may give.
        values: of the options that are given, by the names that Python has for them.
    """

    name: str
    rewrite: Rewrite
    source: str
    module: str
    settings: tuple[Setting, ...] = ()
    values: Mapping[str, SettingValue] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return self.name

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """Module and name of the function, such as ``mylab.memory_only.memory_only``."""
        return f"{self.module}.{name_of(self.rewrite)}"

    def given(self, call: Call, where: str) -> Self:
        """Return the pass with the options of a call.

        Raises:
            UserError: an option does not exist, is of another type, or is missing.
        """
        return replace(self, values=MappingProxyType(values_of(call, self.settings, where)))

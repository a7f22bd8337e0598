"""Lowering passes: rewrites of a whole program that stay on its level."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dfcompile.frontend import Level, Program

Rewrite: TypeAlias = Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class LoweringPass:
    """A named rewrite of a program of one level; a value, found by the collector.

    Attributes:
        name: as the user writes it in ``--passes``.
        level: of the programs it takes and gives.
        rewrite: the function that was decorated; returns its argument itself if nothing changed.
        source: citation key of where it comes from.
        module: where it is defined.
    """

    name: str
    level: Level
    rewrite: Rewrite
    source: str
    module: str

    def __str__(self) -> str:
        return self.name

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]


def lowering_pass(name: str, *, level: Level, source: str) -> Callable[[Rewrite], LoweringPass]:
    """Make a `LoweringPass` from a function; importing it changes nothing anywhere."""

    def decorate(rewrite: Rewrite) -> LoweringPass:
        return LoweringPass(name, level, rewrite, source, rewrite.__module__)

    return decorate

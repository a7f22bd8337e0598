"""Lowering passes: rewrites of a whole program that stay on its level."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dace.sdfg.validation import InvalidSDFGError

from dfcompile.errors import UserError, VerificationError
from dfcompile.frontend import Level, Program
from dfcompile.host.private_folder import in_private_folder

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


def apply_passes(program: Program, passes: Iterable[LoweringPass]) -> Program:
    """Apply the passes of the program's level in order; each must leave a valid program of that level.

    Raises:
        UserError: of a pass, with ``in pass 'name'`` put before it.
        VerificationError: a pass left an invalid program; the message names the pass.
    """
    for found in passes:
        if found.level is not program.level:
            continue
        try:
            changed = found.rewrite(program)
        except UserError as error:
            raise type(error)(f"in pass {found.name!r}: {error}") from error
        if changed is not program:
            _verify(changed, program.level, found.name)
        program = changed
    return program


def _verify(program: Program, level: Level, name: str) -> None:
    if program.level is not level:
        raise VerificationError(f"in pass {name!r}: level {program.level.name} against {level.name}")
    try:
        with in_private_folder():  # DaCe saves what is invalid in the current one, through whatever links are there
            program.sdfg.validate()
    except InvalidSDFGError as error:
        raise VerificationError(f"in pass {name!r}: invalid SDFG: {' '.join(str(error).split())}") from error

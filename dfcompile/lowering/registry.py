"""Collects what is registered: expansions and passes, our own and those of plug-ins."""

from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.lowering_pass import LoweringPass
from dfcompile.lowering.selection import ExpansionTable
from dfcompile.plugins import Plugin, collect

GROUP = "dfcompile.lowering"


def registered_expansions() -> ExpansionTable:
    """Return every expansion of this package and of the entry points of ``dfcompile.lowering``.

    Raises:
        RegistrationError: two modules claim one expansion, or both claim to be the default.
    """
    return ExpansionTable.of(collect(Expansion, "dfcompile.lowering.expansions", GROUP, key=str))


def registered_passes() -> tuple[Plugin[LoweringPass], ...]:
    """Return every lowering pass of this package and of the entry points of ``dfcompile.lowering``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return collect(LoweringPass, "dfcompile.lowering.passes", GROUP, key=str)

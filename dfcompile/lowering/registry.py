"""Collects what is registered: expansions and passes, our own and those of plug-ins."""

from typing import Final

from dfcompile.lowering.expansion import Expansion, ExpansionTable
from dfcompile.lowering.lowering_pass import LoweringPass
from dfcompile.plugins import Collected, PluginKind

OLDER_GROUP = "dfcompile.lowering"  # of expansions and passes together

EXPANSIONS: Final = PluginKind(
    singular="expansion",
    plural="expansions",
    type=Expansion,
    package="dfcompile.lowering.expansions",
    group="dfcompile.expansions",
    key=str,
    older_groups=(OLDER_GROUP,),
)
PASSES: Final = PluginKind(
    singular="lowering pass",
    plural="lowering passes",
    type=LoweringPass,
    package="dfcompile.lowering.passes",
    group="dfcompile.passes",
    key=str,
    older_groups=(OLDER_GROUP,),
)


def registered_expansions() -> ExpansionTable:
    """Return every expansion of this package and of the entry points of ``dfcompile.expansions``.

    Raises:
        RegistrationError: two modules claim one expansion, or both claim to be the default.
    """
    found = EXPANSIONS.collect()
    return ExpansionTable.of(found.plugins, found.faults)


def registered_passes() -> Collected[LoweringPass]:
    """Return every lowering pass of this package and of the entry points of ``dfcompile.passes``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return PASSES.collect()

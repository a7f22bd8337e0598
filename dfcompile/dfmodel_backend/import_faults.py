"""What cannot be imported of the kinds of plug-ins of this stage."""

from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solvers
from dfcompile.dfmodel_backend.machine.named_systems import named_systems
from dfcompile.dfmodel_backend.machine.network.topologies import dimension_kinds
from dfcompile.plugins import ImportFault


def plugin_faults() -> tuple[ImportFault, ...]:
    """Return the modules with solvers, systems and topologies that cannot be imported."""
    return (*fusion_solvers().faults, *named_systems().faults, *dimension_kinds().faults)

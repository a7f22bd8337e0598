"""Collects solvers of fusion, our own and those of plug-ins."""

from functools import cache

from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.plugins import Collected, PluginKind

SOLVERS = PluginKind(
    singular="solver",
    plural="solvers",
    type=FusionSolver,
    package="dfcompile.dfmodel_backend.fusion.solvers",
    group="dfcompile.solvers",
    key=lambda solver: solver.name,
)


@cache
def fusion_solvers() -> Collected[FusionSolver]:
    """Return every solver of fusion of this package and of the entry points of ``dfcompile.solvers``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return SOLVERS.collect()


def find_solver(name: str) -> FusionSolver:
    """Return the solver of a name.

    Raises:
        UserError: there is none; the message has the nearest name.
    """
    return fusion_solvers().find(name, "--solver")

"""What tests of plug-ins need."""

from dfcompile.testing.expansions import canonical_program, check_expansion
from dfcompile.testing.solvers import check_solver
from dfcompile.testing.topologies import check_topology

__all__ = ["canonical_program", "check_expansion", "check_solver", "check_topology"]

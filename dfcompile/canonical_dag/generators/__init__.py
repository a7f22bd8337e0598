"""Generators of canonical DAGs: the graphs on which streaming schedulers are compared [dematteis23, section 6]."""

from dfcompile.canonical_dag.generators.chain import chain
from dfcompile.canonical_dag.generators.cholesky import cholesky
from dfcompile.canonical_dag.generators.fft import fft
from dfcompile.canonical_dag.generators.fork_join import fork_join
from dfcompile.canonical_dag.generators.gaussian import gaussian

__all__ = ["chain", "cholesky", "fft", "fork_join", "gaussian"]

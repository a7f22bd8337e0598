"""Generators of canonical DAGs: the graphs on which streaming schedulers are compared [dematteis23, section 6]."""

from dfcompile.generators.canonical_dags.chain import chain
from dfcompile.generators.canonical_dags.cholesky import cholesky
from dfcompile.generators.canonical_dags.fft import fft
from dfcompile.generators.canonical_dags.fork_join import fork_join
from dfcompile.generators.canonical_dags.gaussian import gaussian

__all__ = ["chain", "cholesky", "fft", "fork_join", "gaussian"]

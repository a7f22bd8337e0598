"""Generators of canonical DAGs: the graphs on which streaming schedulers are compared [dematteis23, section 6]."""

from dfcompile.generators.canonical_dags.graphs import chain, cholesky, fft, fork_join, gaussian

__all__ = ["chain", "cholesky", "fft", "fork_join", "gaussian"]

"""The one verifier of canonical DAGs: every invariant, checked on the arrays."""

from dfcompile.canonical_dag.dag import CanonicalDag


def verify(dag: CanonicalDag) -> None:
    """Check every invariant of a canonical DAG.

    Raises:
        VerificationError: naming the node or the edge and the invariant.
    """

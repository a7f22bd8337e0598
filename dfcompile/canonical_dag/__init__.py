"""The canonical DAG: the data type, its text forms, invariants, extraction from an SDFG, analysis."""

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, CanonicalDag, Scope
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor, KernelVariant, TensorRole
from dfcompile.canonical_dag.kinds import NodeKind
from dfcompile.canonical_dag.topology import topological_order
from dfcompile.canonical_dag.verifier import verify

__all__ = [
    "NO_KERNEL",
    "NO_MEMBER",
    "CanonicalDag",
    "DagBuilder",
    "Kernel",
    "KernelTensor",
    "KernelVariant",
    "NodeKind",
    "Scope",
    "TensorRole",
    "topological_order",
    "verify",
]

"""The canonical DAG: the data type, its text forms, invariants, extraction from an SDFG, analysis."""

from dfcompile.canonical_dag.analysis import critical_path, io_elements, levels, total_work
from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, CanonicalDag, Scope
from dfcompile.canonical_dag.granularity import DECLARED, Granularity, parse_granularity
from dfcompile.canonical_dag.graphviz_form import Cluster, to_dot
from dfcompile.canonical_dag.json_form import dag_from_json, dag_to_json, read_dag
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor, KernelVariant, TensorRole
from dfcompile.canonical_dag.kinds import NodeKind
from dfcompile.canonical_dag.streaming_depth import streaming_components, streaming_depth
from dfcompile.canonical_dag.text_form import format_dag, parse_dag
from dfcompile.canonical_dag.topology import topological_order
from dfcompile.canonical_dag.verifier import verify

__all__ = [
    "DECLARED",
    "NO_KERNEL",
    "NO_MEMBER",
    "CanonicalDag",
    "Cluster",
    "DagBuilder",
    "Granularity",
    "Kernel",
    "KernelTensor",
    "KernelVariant",
    "NodeKind",
    "Scope",
    "TensorRole",
    "critical_path",
    "dag_from_json",
    "dag_to_json",
    "format_dag",
    "io_elements",
    "levels",
    "parse_dag",
    "parse_granularity",
    "read_dag",
    "streaming_components",
    "streaming_depth",
    "to_dot",
    "topological_order",
    "total_work",
    "verify",
]

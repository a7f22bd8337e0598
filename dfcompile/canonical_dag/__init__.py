"""The canonical DAG: the data type, its text forms, invariants, analysis.

Extraction from an SDFG is not imported here: it takes DaCe with it.
"""

from dfcompile.canonical_dag.analysis.longest_path import topological_order
from dfcompile.canonical_dag.analysis.work_and_depth import (
    critical_path,
    io_elements,
    levels,
    streaming_components,
    streaming_depth,
    total_work,
)
from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, CanonicalDag, NodeKind, Scope
from dfcompile.canonical_dag.dag_pass import DagPass, apply_dag_passes, dag_pass, registered_dag_passes
from dfcompile.canonical_dag.forms.columns_form import dag_from_npz, dag_to_npz
from dfcompile.canonical_dag.forms.json_form import dag_from_json, dag_to_json, read_dag
from dfcompile.canonical_dag.forms.text_form import format_dag, parse_dag
from dfcompile.canonical_dag.kernel import (
    Digit,
    Kernel,
    KernelLoop,
    KernelTensor,
    KernelVariant,
    LoopKind,
    LoopPart,
    TensorRole,
)
from dfcompile.canonical_dag.verifier import verify

__all__ = [
    "NO_KERNEL",
    "NO_MEMBER",
    "CanonicalDag",
    "DagBuilder",
    "DagPass",
    "Digit",
    "Kernel",
    "KernelLoop",
    "KernelTensor",
    "KernelVariant",
    "LoopKind",
    "LoopPart",
    "NodeKind",
    "Scope",
    "TensorRole",
    "apply_dag_passes",
    "critical_path",
    "dag_from_json",
    "dag_from_npz",
    "dag_pass",
    "dag_to_json",
    "dag_to_npz",
    "format_dag",
    "io_elements",
    "levels",
    "parse_dag",
    "read_dag",
    "registered_dag_passes",
    "streaming_components",
    "streaming_depth",
    "topological_order",
    "total_work",
    "verify",
]

"""The canonical DAG: the data type, its text forms, invariants, analysis.

Extraction from an SDFG is not imported here: it takes DaCe with it.
"""

from dfcompile.canonical_dag.analysis import critical_path as critical_path
from dfcompile.canonical_dag.analysis import io_elements as io_elements
from dfcompile.canonical_dag.analysis import levels as levels
from dfcompile.canonical_dag.analysis import streaming_components as streaming_components
from dfcompile.canonical_dag.analysis import streaming_depth as streaming_depth
from dfcompile.canonical_dag.analysis import topological_order as topological_order
from dfcompile.canonical_dag.analysis import total_work as total_work
from dfcompile.canonical_dag.builder import DagBuilder as DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL as NO_KERNEL
from dfcompile.canonical_dag.dag import NO_MEMBER as NO_MEMBER
from dfcompile.canonical_dag.dag import CanonicalDag as CanonicalDag
from dfcompile.canonical_dag.dag import NodeKind as NodeKind
from dfcompile.canonical_dag.dag import Scope as Scope
from dfcompile.canonical_dag.dag_pass import DagPass as DagPass
from dfcompile.canonical_dag.dag_pass import apply_dag_passes as apply_dag_passes
from dfcompile.canonical_dag.dag_pass import dag_pass as dag_pass
from dfcompile.canonical_dag.dag_pass import registered_dag_passes as registered_dag_passes
from dfcompile.canonical_dag.forms.json_form import dag_from_json as dag_from_json
from dfcompile.canonical_dag.forms.json_form import dag_to_json as dag_to_json
from dfcompile.canonical_dag.forms.json_form import read_dag as read_dag
from dfcompile.canonical_dag.forms.text_form import format_dag as format_dag
from dfcompile.canonical_dag.forms.text_form import parse_dag as parse_dag
from dfcompile.canonical_dag.kernel import Digit as Digit
from dfcompile.canonical_dag.kernel import Kernel as Kernel
from dfcompile.canonical_dag.kernel import KernelLoop as KernelLoop
from dfcompile.canonical_dag.kernel import KernelTensor as KernelTensor
from dfcompile.canonical_dag.kernel import KernelVariant as KernelVariant
from dfcompile.canonical_dag.kernel import LoopKind as LoopKind
from dfcompile.canonical_dag.kernel import LoopPart as LoopPart
from dfcompile.canonical_dag.kernel import TensorRole as TensorRole
from dfcompile.canonical_dag.verifier import verify as verify

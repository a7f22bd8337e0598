"""What a task of a mapping takes from each edge in a cycle, and its work in such words [ko24, section 4]."""

import numpy as np

from dfcompile.audit.paths import components_of
from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend import TaskMapping
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.errors import VerificationError


def contracts(dag: CanonicalDag) -> Bool:
    """Return whether each node belongs to a contraction, shape [nodes]."""
    of_scope = [scope.kernel != NO_KERNEL and dag.kernels[scope.kernel].variant.is_gemm for scope in dag.scopes]
    return np.array(of_scope, dtype=np.bool_)[dag.node_scope]


def words(dag: CanonicalDag, system: System) -> Int64:
    """Return the words that travel on each edge, shape [edges].

    A word is one element per lane; one per multiply-adder where all tasks that stream to one another are of
    contractions.

    Args:
        dag: volumes in elements.
        system: of chips with such cores.
    """
    chip, task = system.accelerator, dag.is_computational
    narrow = ~contracts(dag)
    if chip.stages_per_core > 1:
        stream = task[dag.edge_source] & task[dag.edge_target]
        component = components_of(dag.nodes_count, dag.edge_source[stream], dag.edge_target[stream])
        has_narrow = np.zeros(dag.nodes_count, dtype=np.bool_)
        has_narrow[component[narrow & task]] = True
        narrow = has_narrow[component]
    width = np.where(narrow, chip.lanes_per_core, chip.lanes_per_core * chip.stages_per_core)
    at_task = np.where(task[dag.edge_source], dag.edge_source, dag.edge_target)
    return -(-dag.edge_volume // width[at_task])


def least_work(dag: CanonicalDag, system: System) -> int:
    """Return the cycles of all tasks in words as wide as can be, as if contractions streamed to nothing else."""
    chip = system.accelerator
    width = np.where(contracts(dag), chip.lanes_per_core * chip.stages_per_core, chip.lanes_per_core)
    return sum((-(-work_of(dag, dag.edge_volume) // width)).tolist())


def work_of(dag: CanonicalDag, moved: Int64) -> Int64:
    """Return the cycles of each task: the most that travels on one of its edges, shape [nodes]."""
    work = np.zeros(dag.nodes_count, dtype=np.int64)
    for ends in (dag.edge_source, dag.edge_target):
        np.maximum.at(work, ends, moved)
    return np.where(dag.is_computational, work, 0)


def work_in_words(attained: TaskMapping) -> Int64:
    """Return the work of each task of a mapping, shape [nodes].

    Raises:
        VerificationError: its schedule is one of other words.
    """
    moved = words(attained.dag, attained.system)
    other = np.flatnonzero(moved != attained.machine_dag.edge_volume)
    if len(other):
        edge = int(other[0])
        raise VerificationError(
            f"edge {edge} of the mapping: found {attained.machine_dag.edge_volume[edge]} words against {moved[edge]}"
        )
    return work_of(attained.dag, moved)

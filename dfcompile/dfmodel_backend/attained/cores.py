"""What a task does on one core: elements of an edge per cycle, products per cycle."""

import numpy as np

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, streaming_components
from dfcompile.canonical_dag.dag import Bool, Int64, kinds_of_tasks, node_volumes
from dfcompile.dfmodel_backend.machine.system import Accelerator
from dfcompile.records import replace


def on_cores(dag: CanonicalDag, chip: Accelerator) -> CanonicalDag:
    """Return a canonical DAG in words: what a task takes from each input, and hands to each output, in a cycle.

    A core of ``lanes x stages`` multiply-adders runs one task. A word is one element per lane. Tasks of a contraction
    that stream to none but such tasks have one element per multiply-adder: each lane takes as many terms of its sums as
    it has stages [ko24, section 4]. On a core of one lane and one stage words are elements [dematteis23].
    """
    if chip.lanes_per_core == chip.stages_per_core == 1:
        return dag
    component = streaming_components(dag)
    mixed = np.zeros(int(component.max(initial=0)) + 1, dtype=np.bool_)
    mixed[component[dag.is_computational & ~_contracts(dag)]] = True
    return _in_words(dag, _word_sizes(~mixed[component], chip))


def least_work(dag: CanonicalDag, chip: Accelerator) -> Int64:
    """Return the work of each node in words as wide as any exchange between chips can make them, shape [nodes].

    Words are narrow where contractions stream to other tasks; between chips nothing streams.
    """
    return np.asarray(-(-dag.work // _word_sizes(_contracts(dag), chip)))


def _in_words(dag: CanonicalDag, width: Int64) -> CanonicalDag:
    task = dag.is_computational
    at = np.where(task[dag.edge_source], dag.edge_source, dag.edge_target)
    volume = -(-dag.edge_volume // width[at])
    volume_in, volume_out = node_volumes(dag.kind, dag.edge_source, dag.edge_target, volume)
    kind = np.where(task, kinds_of_tasks(volume_in, volume_out), dag.kind).astype(np.int8)
    distinct = np.minimum(dag.edge_distinct, volume)
    for column in (volume, distinct, volume_in, volume_out, kind):
        column.setflags(write=False)
    return replace(
        dag, kind=kind, volume_in=volume_in, volume_out=volume_out, edge_volume=volume, edge_distinct=distinct
    )


def _word_sizes(is_wide: Bool, chip: Accelerator) -> Int64:
    """Return the elements of a word of each node's edges: of wide ones one per multiply-adder, shape [nodes]."""
    return np.where(is_wide, chip.lanes_per_core * chip.stages_per_core, chip.lanes_per_core).astype(np.int64)


def _contracts(dag: CanonicalDag) -> Bool:
    """Return whether each node is of a contraction, shape [nodes]."""
    contracts = np.array(
        [scope.kernel != NO_KERNEL and dag.kernels[scope.kernel].variant.is_gemm for scope in dag.scopes],
        dtype=np.bool_,
    )
    return np.asarray(contracts[dag.node_scope])

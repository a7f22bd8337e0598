"""Chains: tasks in a row that take the processing elements in turn, which no schedule beats.

When a task starts, all tasks before it have started, and at most P - 1 of them are still on the machine. They end in
the order of the chain, so the one P places before it has ended. In turn each task starts as soon as that and its first
element allow; and nobody gains by a later end of another.
"""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.dag import Bool
from dfcompile.scheduler.listing.list_schedule import FREE, ListSchedule, ListScheduler


def is_chain(dag: CanonicalDag) -> bool:
    """Return whether the tasks of a graph are one after another, streaming or through memory between them.

    What is in memory from the beginning or to the end plays no part: nobody waits for it, or it waits for nobody.
    """
    written, read = np.zeros((2, dag.nodes_count), dtype=np.bool_)
    written[dag.edge_target], read[dag.edge_source] = True, True
    task = dag.is_computational
    # Edges that neither leave what is there from the beginning nor enter what nobody reads.
    inner = (task | written)[dag.edge_source] & (task | read)[dag.edge_target]
    ends = dag.edge_source[inner], dag.edge_target[inner]
    degrees = [np.bincount(end, minlength=dag.nodes_count) for end in ends]
    is_inner = task | (degrees[0] + degrees[1] > 0)
    return (
        dag.tasks_count > 0
        and int(inner.sum()) == int(is_inner.sum()) - 1
        and all(int(degree.max(initial=0)) <= 1 for degree in degrees)
    )


def in_turn(dag: CanonicalDag, pes: int, streamed: Bool) -> ListSchedule:
    """Return the schedule of a chain whose tasks take the elements in turn.

    Its times are the earliest, as far as they are known without looking at single elements.

    Args:
        dag: a chain.
        pes: number of processing elements P.
        streamed: which edges stream, shape [edges].
    """
    sequence, task = topological_order(dag), dag.is_computational
    row = sequence[task[sequence]]
    before = np.full(dag.nodes_count, FREE, dtype=np.int64)
    before[row[pes:]] = row[:-pes]
    return ListScheduler(dag, pes, streamed).settled(sequence.tolist(), before.tolist())

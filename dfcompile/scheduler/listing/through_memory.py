"""The schedule in which nothing streams, as a streaming schedule: known for nothing, and short where work is fine.

Where operators are cut into about as many equal tasks as there are elements, a stream from one task to the next gains
next to nothing, and keeps an element for as long as its producer runs.
"""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.scheduler.listing.list_schedule import planned_schedule
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import NonStreamingSchedule, Schedule

_NEARLY = 1000  # no other schedule is shorter by one part in so many
_MANY = 2**17  # nodes: of more, gangs take half of the time
_NEARLY_OF_MANY = 10  # of tasks so many and so well shared, no gangs of ten models were shorter


def through_memory(dag: CanonicalDag, options: ScheduleOptions, found: NonStreamingSchedule) -> Schedule:
    """Return a non-streaming schedule as one without FIFOs; each node is a block of its own.

    Args:
        dag: the graph.
        options: P, and the name of the partitioner.
        found: its non-streaming schedule.
    """
    place = np.empty(dag.nodes_count, dtype=np.int64)
    place[topological_order(dag)] = np.arange(dag.nodes_count)
    order = np.lexsort((place, found.start)).tolist(), found.pe
    return planned_schedule(dag, options, order, (found.start, found.end), np.zeros(dag.edges_count, dtype=np.bool_))


def is_nearly_shortest(dag: CanonicalDag, pes: int, cycles: int) -> bool:
    """Return whether a makespan is hardly longer than all work shared by P; of many tasks, whether not far longer.

    >>> from dfcompile.generators.canonical_dags import chain
    >>> dag = chain(3, 64, 1)
    >>> work = sum(dag.work.tolist())
    >>> is_nearly_shortest(dag, 1, work), is_nearly_shortest(dag, 2, work)
    (True, False)
    """
    shared = -(-sum(dag.work.tolist()) // pes)
    return bool((cycles - shared) * (_NEARLY if dag.nodes_count <= _MANY else _NEARLY_OF_MANY) <= shared)

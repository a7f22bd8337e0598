"""A schedule as columns, for a chart that zooms: where and when each task runs, whatever their number."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.scheduler import NO_PE, Schedule


class Timeline(Struct, frozen=True, eq=False):
    """The tasks of a schedule, in the order of the DAG.

    Attributes:
        pes: number of processing elements.
        makespan_cycles: of the schedule.
        families: pairs of a family's name and the user's operator that it belongs to.
        family: of each task.
        member: number of each task within its family.
        pe: of each task.
        start: cycle in which each task begins.
        end: cycle in which each task ends.
        block: spatial block of each task.
    """

    pes: int
    makespan_cycles: int
    families: tuple[tuple[str, str], ...]
    family: Int64
    member: Int64
    pe: Int64
    start: Int64
    end: Int64
    block: Int64


def timeline_of(dag: CanonicalDag, schedule: Schedule) -> Timeline:
    """Return the tasks that run on processing elements; buffers are none."""
    tasks = np.flatnonzero(schedule.pe != NO_PE)
    scopes, family = np.unique(dag.node_scope[tasks], return_inverse=True)
    columns = (dag.node_member, schedule.pe, schedule.start, schedule.last_out, schedule.block)
    member, pe, start, end, block = (column[tasks].astype(np.int64) for column in columns)
    families = tuple((dag.scopes[number].name, dag.scopes[number].origin) for number in scopes.tolist())
    family = family.astype(np.int64)
    return Timeline(schedule.pes, schedule.makespan_cycles, families, family, member, pe, start, end, block)

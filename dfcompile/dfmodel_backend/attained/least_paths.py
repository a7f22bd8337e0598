"""Lower bounds on sets of kernels by their longest paths: however many cores there are, tasks wait for one another."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.task_units import NO_UNIT
from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.scheduler.bounds.precedence import NO_STREAM, directions

# Of larger graphs paths are not looked at: the bound is their work alone.
MOST_CELLS = 2**20  # nodes times units
MOST_STEPS = 2**26  # sets times pairs of units
NOWHERE = -(2**40)  # cycles: of a node that no path from a unit reaches


class LeastPaths(Struct, frozen=True, eq=False):
    """The longest paths of a lowering.

    Attributes:
        between: cycles from the start of a task of one unit until the end of one of another at least, where a path
            leads from the former to the latter, otherwise 0, shape [units, units].
    """

    between: Int64

    @staticmethod
    def of(dag: CanonicalDag, unit: Int64, units: int) -> "LeastPaths":
        """Return the longest paths of a lowering, of a large one none.

        Args:
            dag: the lowering.
            unit: of each node, shape [nodes].
            units: how many there are.
        """
        between = np.zeros((units, units), np.int64)
        if dag.nodes_count * units > MOST_CELLS:
            return LeastPaths(between)
        ahead, _ = directions(dag)
        task, work = dag.is_computational.tolist(), dag.work.tolist()
        start = np.full((dag.nodes_count, units), NOWHERE, np.int64)
        end = start.copy()
        for node in ahead.order:
            begin, least = start[node], end[node]
            for other, to_start, to_end in ahead.awaited[node]:
                if to_start == NO_STREAM:
                    np.maximum(begin, end[other], out=begin)
                else:
                    np.maximum(begin, start[other] + to_start, out=begin)
                    np.maximum(least, end[other] + to_end, out=least)
            own = int(unit[node])
            if task[node] and own != NO_UNIT:
                begin[own] = max(begin[own], 0)
                np.maximum(least, begin + work[node], out=least)
                np.maximum(between[:, own], least, out=between[:, own])
            else:
                least[:] = begin
        return LeastPaths(between)

    def cycles(self, members: Members, before: Numbers, after: Numbers) -> Column:
        """Return the longest path within the units by which each pair of down-sets differs; 0 where they are too many.

        A path between two units of such a set leads through units of the set alone.

        Args:
            members: units of each set, shape [sets, units].
            before: number of the smaller set of each pair.
            after: number of the larger set of each pair.
        """
        longest = np.zeros(len(before))
        units = len(self.between)
        if not self.between.any() or len(before) * units * units > MOST_STEPS:
            return longest
        inside = members[after] & ~members[before]
        for unit in range(units):
            rows = np.flatnonzero(inside[:, unit])
            reached = np.flatnonzero(self.between[unit])
            paths = np.where(inside[np.ix_(rows, reached)], self.between[unit][reached], 0)
            longest[rows] = np.maximum(longest[rows], paths.max(axis=1, initial=0))
        return longest

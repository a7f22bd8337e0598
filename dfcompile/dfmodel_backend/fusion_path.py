"""Fusion as a shortest path over down-sets, by dynamic programming: exact."""

from collections.abc import Callable

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Numbers
from dfcompile.dfmodel_backend.fusion_arcs import Arcs
from dfcompile.dfmodel_backend.fusion_shape import FusionShape

Chain = tuple[int, ...]  # set of kernels of each configuration, in order of execution; 0: empty


def least_chain(
    arcs: Arcs, costs: Column, shape: FusionShape, combine: Callable[[Column, Column], Column] = np.add
) -> tuple[float, Chain | None]:
    """Return the least cost of a chain of all kernels, and the chain, or None if there is none.

    Ties go to configurations that come early, then to fewer kernels done before them.

    Args:
        arcs: possible configurations.
        costs: of each arc; infinite if it is not possible after all.
        shape: how many configurations there are, and which kernels may be in which.
        combine: how costs of configurations come together: a sum, or a maximum.
    """
    allowed = arcs_by_slot(shape, arcs)
    starts = arcs.starts
    ends = arcs.after[starts] if len(starts) else arcs.after
    best = np.full(len(arcs.down_sets), np.inf)
    best[0] = 0.0
    history = [best]
    for slot, usable in enumerate(allowed):
        following = best.copy()
        if len(starts):
            reached = np.where(usable, combine(best[arcs.before], costs), np.inf)
            following[ends] = np.minimum(following[ends], np.minimum.reduceat(reached, starts))
        is_settled = np.array_equal(following, best) and len(set(shape.allowed[slot:])) == 1
        best = following
        history.append(best)
        if is_settled:  # later configurations may hold the same kernels: they change nothing either
            break
    if not np.isfinite(best[-1]):
        return float("inf"), None
    return float(best[-1]), _trace(arcs, costs, allowed, history, combine)


def arcs_by_slot(shape: FusionShape, arcs: Arcs) -> list[Numbers]:
    """Return which arcs are possible, per configuration."""
    known: dict[int, Numbers] = {}
    columns = []
    for mask in shape.allowed:
        if mask not in known:
            fitting = np.array([added & ~mask == 0 for added in arcs.sets], bool)
            known[mask] = fitting[arcs.added] if len(fitting) else np.zeros(0, bool)
        columns.append(known[mask])
    return columns


def _trace(
    arcs: Arcs,
    costs: Column,
    allowed: list[Numbers],
    history: list[Column],
    combine: Callable[[Column, Column], Column],
) -> Chain:
    """Return the set of each configuration from the least costs after each configuration."""
    state = len(arcs.down_sets) - 1
    chain = [0] * len(allowed)
    for slot in range(len(history) - 2, -1, -1):
        if history[slot][state] == history[slot + 1][state]:
            continue
        first, last = np.searchsorted(arcs.after, [state, state + 1])
        part = slice(first, last)
        reached = np.where(allowed[slot][part], combine(history[slot][arcs.before[part]], costs[part]), np.inf)
        arc = first + int(np.argmin(reached))
        chain[slot] = arcs.sets[arcs.added[arc]]
        state = int(arcs.before[arc])
    return tuple(chain)

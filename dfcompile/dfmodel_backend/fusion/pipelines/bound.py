"""A time that no partition into pipeline stages beats: kernels are whole, and a stage sends on what it made."""

import math

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import Overlap

ROUNDING = 1e-13  # relative


def sends_ns(model: DesignModel, down_sets: Members) -> Column:
    """Return the time in which a stage that ends with each down-set, ``[set, kernel]``, hands on what others read."""
    link = model.degrees.pipeline_link
    if link is None or not model.edges:
        return np.zeros(len(down_sets))
    source = np.array([edge.source for edge in model.edges], np.intp)
    target = np.array([edge.target for edge in model.edges], np.intp)
    cut: Column = (down_sets[:, source] & ~down_sets[:, target]).astype(float) @ model.edge_bytes
    return model.tiles * cut / link.gb_per_s


def least_stage_ns(model: DesignModel, down_sets: Members) -> float:
    """Return a time that the slowest stage takes at least.

    A stage takes at least the unavoidable times of its kernels. Of those that do not overlap the sum adds up over
    kernels; the largest is a bound for each such sum, found by bisection: each stage ends as late as it can.
    """
    done = down_sets.astype(float) @ model.least_parts
    compute, memory, network = done[:, 0], done[:, 1], done[:, 2]
    sums = {
        Overlap.NO_OVERLAP: (compute + memory + network,),
        Overlap.PERFECT_OVERLAP: (compute, memory, network),
        Overlap.OVERLAP_COMPUTE_MEMORY: (compute + network, memory + network),
    }[model.design.execution.overlap]
    sends = sends_ns(model, down_sets)
    return max(_least_bottleneck(column, sends, model.degrees.pipeline) for column in sums)


def _least_bottleneck(done: Column, sends: Column, stages: int) -> float:
    """Return a bound of the largest stage; ``done`` is the time of all kernels of each down-set, the last is all."""
    low = float(done[-1]) / stages
    high = _largest_stage(done, sends, stages, float(done[-1]))
    while True:
        below = high * (1 - ROUNDING)
        found = _largest_stage(done, sends, stages, below)
        if found == math.inf or low >= below:
            return max(low, below) * (1 - ROUNDING)
        high = found
        middle = (low + high) / 2
        found = _largest_stage(done, sends, stages, middle)
        low, high = (middle, high) if found == math.inf else (low, found)


def _largest_stage(done: Column, sends: Column, stages: int, limit: float) -> float:
    """Return the largest of stages that each end as late as a limit allows, or infinity if they do not get through."""
    ends = done + sends
    reached = largest = 0.0
    for _ in range(stages):
        possible = ends <= reached + limit
        latest = float(done[possible].max(initial=0.0))
        if latest <= reached:
            break
        largest = max(largest, float(ends[possible & (done == latest)].min()) - reached)
        reached = latest
    return largest if reached >= done[-1] else math.inf

"""Longest paths and weakly connected components of any graph given as columns of edge ends, node by node."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = "npt.NDArray[np.integer]"


def neighbours_of(count: int, ends: Column, others: Column) -> tuple[list[int], list[int]]:
    """Return where the neighbours of each of so many nodes begin, and the other ends of the edges that end there."""
    by_end = np.argsort(ends, kind="stable")
    return np.searchsorted(ends[by_end], np.arange(count + 1)).tolist(), others[by_end].tolist()


def reached_from_sources(count: int, source: Column, target: Column) -> list[int]:
    """Return the nodes in an order that follows the edges, without those on a cycle or behind one."""
    start, consumers = neighbours_of(count, source, target)
    missing = np.bincount(target, minlength=count).tolist()
    order = [node for node in range(count) if not missing[node]]
    for node in order:  # it grows
        for consumer in consumers[start[node] : start[node + 1]]:
            missing[consumer] -= 1
            if not missing[consumer]:
                order.append(consumer)
    return order


def longest_to(count: int, source: Column, target: Column, length: list[int]) -> list[int]:
    """Return the largest sum of lengths along a path that ends with each node; 0 on cycles and behind them."""
    start, producers = neighbours_of(count, target, source)
    longest = [0] * count
    for node in reached_from_sources(count, source, target):
        before = [longest[producer] for producer in producers[start[node] : start[node + 1]]]
        longest[node] = length[node] + max(before, default=0)
    return longest


def components_of(count: int, source: Column, target: Column) -> list[int]:
    """Return for each node the smallest one that it is connected with, whichever way edges lead."""
    start, around = neighbours_of(count, np.concatenate([source, target]), np.concatenate([target, source]))
    component = [-1] * count
    for first in range(count):
        if component[first] >= 0:
            continue
        component[first], waiting = first, [first]
        while waiting:
            node = waiting.pop()
            for other in around[start[node] : start[node + 1]]:
                if component[other] < 0:
                    component[other] = first
                    waiting.append(other)
    return component

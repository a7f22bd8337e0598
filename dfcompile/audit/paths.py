"""Longest paths and weakly connected components of any graph given as columns of edge ends, node by node."""

from collections import deque
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = "npt.NDArray[np.integer]"


def neighbours_of(count: int, ends: Column, others: Column) -> list[list[int]]:
    """Return for each of so many nodes the other ends of the edges that end there."""
    by_end = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[by_end], np.arange(count + 1)).tolist()
    listed = others[by_end].tolist()
    return [listed[first:last] for first, last in pairwise(starts)]


def reached_from_sources(count: int, source: Column, target: Column) -> list[int]:
    """Return the nodes in an order that follows the edges, without those on a cycle or behind one."""
    consumers = neighbours_of(count, source, target)
    missing = np.bincount(target, minlength=count).tolist()
    waiting = deque(node for node in range(count) if not missing[node])
    order = []
    while waiting:
        node = waiting.popleft()
        order.append(node)
        for consumer in consumers[node]:
            missing[consumer] -= 1
            if not missing[consumer]:
                waiting.append(consumer)
    return order


def longest_to(count: int, source: Column, target: Column, length: list[int]) -> list[int]:
    """Return the largest sum of lengths along a path that ends with each node; 0 on cycles and behind them."""
    producers = neighbours_of(count, target, source)
    longest = [0] * count
    for node in reached_from_sources(count, source, target):
        longest[node] = length[node] + max([longest[producer] for producer in producers[node]], default=0)
    return longest


def components_of(count: int, source: Column, target: Column) -> list[int]:
    """Return for each node the smallest one that it is connected with, whichever way edges lead."""
    around = neighbours_of(count, np.concatenate([source, target]), np.concatenate([target, source]))
    component = [-1] * count
    for first in range(count):
        if component[first] >= 0:
            continue
        component[first], waiting = first, [first]
        while waiting:
            for other in around[waiting.pop()]:
                if component[other] < 0:
                    component[other] = first
                    waiting.append(other)
    return component

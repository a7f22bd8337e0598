"""A traced graph: what every operation reads, and the shape that it makes."""

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum, unique
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

PARAMETER, INPUT, CACHE = "parameter", "input", "cache"
SHAPE_ONLY = ("alias", "clone", "contiguous", "detach", "expand", "reshape", "to", "transpose", "unsqueeze", "view")


@unique
class Operand(StrEnum):
    """What an operand is made of."""

    WEIGHTS = "w"  # of parameters alone
    ACTIVATIONS = "a"
    GROUPED = "qa"  # one value for several heads
    CACHE = "kv"  # from a cache


class TraceNode(Struct, frozen=True):
    """One value: by what it is made, of which others, and its shape.

    Attributes:
        name: of the value.
        op: that makes it, such as ``linear``; or `PARAMETER`, `INPUT`, `CACHE`.
        inputs: values that it reads, in order.
        shape: of the value.
        scope: module that it belongs to, such as ``model.layers.0.mlp``.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    scope: str = ""

    @property
    def elements(self) -> int:
        """Of the value."""
        return math.prod(self.shape)


class Trace:
    """A graph in the order in which it runs."""

    def __init__(self, nodes: tuple[TraceNode, ...]) -> None:
        self.nodes = nodes
        self._by_name: Mapping[str, TraceNode] = {node.name: node for node in nodes}

    def inputs(self, node: TraceNode) -> tuple[TraceNode, ...]:
        """Return what a node reads."""
        return tuple(self._by_name[name] for name in node.inputs)

    @property
    def cache_elements(self) -> int:
        """Elements of all inputs that are caches."""
        return sum(node.elements for node in self.nodes if node.op == CACHE)

    @cached_property
    def _made_of_parameters(self) -> frozenset[str]:
        found: set[str] = set()
        for node in self.nodes:
            made = node.op not in (INPUT, CACHE) and bool(node.inputs) and all(name in found for name in node.inputs)
            if node.op == PARAMETER or made:
                found.add(node.name)
        return frozenset(found)

    def operand(self, node: TraceNode) -> Operand:
        """Return what a value is made of; shape changes are looked through."""
        if node.name in self._made_of_parameters:
            return Operand.WEIGHTS
        if any(one.op == CACHE or self.is_append(one) for one in self.unshaped(node)):
            return Operand.CACHE
        if self.ungrouped(node) is not node:
            return Operand.GROUPED
        return Operand.ACTIVATIONS

    def unshaped(self, node: TraceNode) -> Iterator[TraceNode]:
        """Yield a value and those that it is a reshaped form of."""
        yield node
        while node.op in SHAPE_ONLY and node.inputs:
            node = self._by_name[node.inputs[0]]
            yield node

    def ungrouped(self, node: TraceNode) -> TraceNode:
        """Return the value of which several heads have copies: before ``unsqueeze, expand, reshape``."""
        chain = list(self.unshaped(node))
        for at, (one, below) in enumerate(pairwise(chain), start=1):
            if one.op == "expand" and one.elements > below.elements:
                return next((low for low in chain[at:] if low.op != "unsqueeze"), below)
        return node

    def is_append(self, node: TraceNode) -> bool:
        """Whether a node puts new tokens behind those of a cache: no runtime copies the cache for it."""
        return node.op == "cat" and any(
            one.op == CACHE for read in self.inputs(node)[:1] for one in self.unshaped(read)
        )

    def before(self, node: TraceNode, op: str, within: str) -> TraceNode | None:
        """Return the last value of an operation that a node depends on, within a module."""
        seen, left = {node.name}, [node]
        while left:
            one = left.pop()
            if one.op == op:
                return one
            for read in self.inputs(one):
                if read.name not in seen and read.scope.startswith(within):
                    seen.add(read.name)
                    left.append(read)
        return None

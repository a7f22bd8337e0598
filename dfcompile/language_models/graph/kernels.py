"""A traced graph, and its kernels: what is a copy, a broadcast or a choice among experts is recognised as such."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from dfcompile.records import replace

PARAMETER, INPUT, CACHE = "parameter", "input", "cache"
SHAPE_ONLY = ("alias", "clone", "contiguous", "detach", "expand", "reshape", "to", "transpose", "unsqueeze", "view")
PRODUCTS = ("addmm", "bmm", "grouped_mm", "linear", "matmul", "mm")
ATTENTION = "scaled_dot_product_attention"
APPEND = "append"
_LAYER = re.compile(r"\.\d+(?=\.|$)")


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
        return Operand.ACTIVATIONS if self.ungrouped(node) is node else Operand.GROUPED

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
        return node.op == "cat" and any(one.op == CACHE for old in self.inputs(node)[:1] for one in self.unshaped(old))

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


class GraphKernel(Struct, frozen=True):
    """A product, an attention or an append of a graph.

    Attributes:
        kind: classes of its operands, such as ``Ma_Mw``; V where a sequence brings one row.
        name: of its module, with ``*`` for numbers of layers.
        op: of the graph.
        m: rows.
        k: depth.
        n: columns.
        batch: products of that size.
        macs: multiply-accumulates of one run.
        second_elements: of the second operand, broadcasts once.
        count: of layers that have the same.
    """

    kind: str
    name: str
    op: str
    m: int
    k: int
    n: int
    batch: int
    macs: int
    second_elements: int
    count: int = 1


def graph_kernels(trace: Trace) -> tuple[GraphKernel, ...]:
    """Return the kernels of a graph, equal ones of several layers folded into one."""
    found = [kernel for node in trace.nodes for kernel in _kernels(trace, node)]
    return tuple(replace(kernel, count=count) for kernel, count in Counter(found).items())


def total_macs(kernels: tuple[GraphKernel, ...]) -> int:
    """Return the multiply-accumulates of all."""
    return sum(kernel.count * kernel.macs for kernel in kernels)


def _kernels(trace: Trace, node: TraceNode) -> Iterator[GraphKernel]:
    if node.op in PRODUCTS:
        yield _product(trace, node)
    elif node.op == ATTENTION:
        yield _attention(trace, node)
    elif trace.is_append(node):
        new = trace.inputs(node)[1]
        yield GraphKernel("KVCache", _name(node), APPEND, new.elements, 1, 1, 1, 0, new.elements)


def _product(trace: Trace, node: TraceNode) -> GraphKernel:
    first, second = trace.inputs(node)[-2:] if node.op == "addmm" else trace.inputs(node)[:2]
    k, n = first.shape[-1], second.shape[0 if node.op == "linear" else -1]
    weights = trace.operand(second)
    outer = 1 if node.op in ("addmm", "grouped_mm", "linear", "mm") else math.prod(node.shape[:-2])
    rows = math.prod(node.shape[:-1]) // outer
    if node.op == "matmul" and weights is Operand.WEIGHTS and len(second.shape) == 2:
        rows, outer = rows * outer, 1
    kernel = GraphKernel(
        f"{'V' if rows == 1 else 'M'}a_{'V' if n == 1 else 'M'}{weights.value}",
        _name(node), node.op, rows, k, n, outer, outer * rows * k * n, trace.ungrouped(second).elements,
    )  # fmt: skip
    return _among_experts(trace, node, second, kernel)


def _among_experts(trace: Trace, node: TraceNode, second: TraceNode, kernel: GraphKernel) -> GraphKernel:
    """Return what tokens need of their experts, where a graph computes all of them or gathers each one's weights.

    Computed all: a batch of every expert's weights, after a choice of ``k`` of ``E`` in the same module. Gathered: a
    batch of chosen matrices, one per token and choice, which are rows of one product.
    """
    if node.op not in ("bmm", "matmul") or len(second.shape) != 3 or kernel.kind[-1] != Operand.WEIGHTS.value:
        gathers = ("index", "index_select", "gather")
        table = next((trace.inputs(one)[0] for one in trace.unshaped(second) if one.op in gathers), None)
        if table is None or trace.operand(table) is not Operand.WEIGHTS or kernel.m != 1:
            return kernel
        held = min(kernel.batch, table.shape[0]) * kernel.k * kernel.n
        return replace(kernel, kind="Ma_Mw", m=kernel.batch, batch=1, second_elements=held)
    chosen = trace.before(node, "topk", node.scope.rpartition(".experts")[0] or node.scope)
    if chosen is None:
        return kernel
    rows = kernel.m * chosen.shape[-1]
    return replace(kernel, kind="Ma_Mw", m=rows, batch=1, macs=rows * kernel.k * kernel.n)


def _attention(trace: Trace, node: TraceNode) -> GraphKernel:
    queries, keys, values = trace.inputs(node)[:3]
    source, heads = trace.ungrouped(keys), math.prod(queries.shape[:-2])
    grouped = keys.elements // source.elements
    rows, width, context = queries.shape[-2], queries.shape[-1], keys.shape[-2]
    held = source.elements + trace.ungrouped(values).elements
    kind = Operand.CACHE if trace.operand(source) is Operand.CACHE else Operand.GROUPED
    return GraphKernel(
        f"{'V' if rows == 1 else 'M'}a_M{kind.value}", _name(node), node.op,
        rows * grouped, width, context, heads // grouped,
        heads * rows * context * (width + values.shape[-1]), held,
    )  # fmt: skip


def _name(node: TraceNode) -> str:
    return _LAYER.sub(".*", node.scope)

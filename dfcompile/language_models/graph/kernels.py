"""Kernels of a traced graph: what is a copy, a broadcast or a choice among experts is recognised as such."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from dfcompile.language_models.graph.trace import Operand, Trace, TraceNode
from dfcompile.records import replace

PRODUCTS = ("addmm", "bmm", "grouped_mm", "linear", "matmul", "mm")
ATTENTION = "scaled_dot_product_attention"
APPEND = "append"
_LAYER = re.compile(r"\.\d+(?=\.|$)")


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
    k = first.shape[-1]
    weights = trace.operand(second)
    n = second.shape[0] if node.op == "linear" else second.shape[-1]
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
        gathered = (one for one in trace.unshaped(second) if one.op in ("index", "index_select", "gather"))
        table = next((trace.inputs(one)[0] for one in gathered), None)
        if table is None or trace.operand(table) is not Operand.WEIGHTS or kernel.m != 1:
            return kernel
        held = min(kernel.batch, table.shape[0]) * kernel.k * kernel.n
        return replace(kernel, kind="Ma_Mw", m=kernel.batch, batch=1, second_elements=held)
    module = node.scope.rpartition(".experts")[0] or node.scope
    chosen = trace.before(node, "topk", module)
    if chosen is None:
        return kernel
    rows = kernel.m * chosen.shape[-1]
    return replace(kernel, kind="Ma_Mw", m=rows, batch=1, macs=rows * kernel.k * kernel.n)


def _attention(trace: Trace, node: TraceNode) -> GraphKernel:
    queries, keys, values = trace.inputs(node)[:3]
    heads = math.prod(queries.shape[:-2])
    source = trace.ungrouped(keys)
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

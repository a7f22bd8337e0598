"""Cuts the state of a large lowered program into several: many steps of DaCe are quadratic in the nodes of a state."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import TypeAlias

import dace
import networkx as nx
from dace.data import View
from dace.memlet import Memlet
from dace.sdfg.graph import MultiConnectorEdge
from dace.sdfg.nodes import AccessNode, Node
from dace.sdfg.state import SDFGState

UNITS = 64  # of a state

Edge: TypeAlias = MultiConnectorEdge[Memlet]


def cut_state(sdfg: dace.SDFG, units: int) -> None:
    """Put what a program of one state computes into several states, one after another, in place.

    A unit is a map scope with all that is inside, another node outside of scopes that computes, or a copy from array
    to array. They come in a topological order, so many to a state; an array stands in each state that uses it, a view
    with what it shows. A program stays as it is if it has several states already, or units that no array stands
    between, or writes through a view.

    Args:
        sdfg: the program.
        units: of a state, at most.
    """
    blocks = sdfg.nodes()
    if len(blocks) != 1 or not isinstance(blocks[0], SDFGState):
        return
    whole = blocks[0]
    # the unit of each node but arrays outside of scopes, by its first node
    scope = whole.scope_dict()
    unit_of: dict[Node, Node] = {}
    for node in whole.nodes():
        outermost = node
        while scope[outermost] is not None:
            outermost = scope[outermost]
        if outermost is not node or not isinstance(node, AccessNode):
            unit_of[node] = outermost
    views = [node for node in whole.data_nodes() if isinstance(node.desc(sdfg), View)]
    shown = {edge.dst: edge for view in views for edge in whole.in_edges(view) if edge.dst_conn == "views"}
    if any(view not in shown or view in unit_of or whole.in_degree(view) > 1 for view in views):
        return
    parts = _parts(whole, unit_of, shown, units)
    if len(parts) < 2:
        return
    states = [sdfg.add_state(f"{whole.label}_{number}") for number in range(len(parts))]
    for state, edges in zip(states, parts, strict=True):
        _fill(state, edges, unit_of, shown)
    sdfg.remove_node(whole)
    for before, after in pairwise(states):
        sdfg.add_edge(before, after, dace.InterstateEdge())
    sdfg.start_block = 0


def _parts(
    state: SDFGState, unit_of: Mapping[Node, Node], shown: Mapping[AccessNode, Edge], units: int
) -> list[list[Edge]]:
    """Return the edges of each part but those from arrays to their views; none if units hang together."""
    number: dict[Node | Edge, int] = {}
    for node in nx.topological_sort(state.nx):
        if unit_of.get(node) is node:
            number[node] = len(number)
        elif node not in unit_of and node not in shown:
            for edge in state.in_edges(node):
                if edge.src not in unit_of:
                    number[edge] = len(number)
    parts: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in state.edges():
        ends = {number[unit_of[node]] for node in (edge.src, edge.dst) if node in unit_of}
        if len(ends) > 1:
            return []
        if edge in number or ends:
            parts[(ends.pop() if ends else number[edge]) // units].append(edge)
    return [parts[part] for part in sorted(parts)]


def _fill(
    state: SDFGState, edges: Sequence[Edge], unit_of: Mapping[Node, Node], shown: Mapping[AccessNode, Edge]
) -> None:
    """Put edges with their nodes into an empty state: those of units as they are, of arrays copies."""
    copies: dict[Node, Node] = {}

    def own(node: Node) -> Node:
        if node in unit_of:
            return node
        if node not in copies:
            copies[node] = deepcopy(node)
            if node in shown:
                add(shown[node])
        return copies[node]

    def add(edge: Edge) -> None:
        state.add_edge(own(edge.src), edge.src_conn, own(edge.dst), edge.dst_conn, deepcopy(edge.data))

    for edge in edges:
        add(edge)

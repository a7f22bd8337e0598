"""The pass drop-dead: operators whose results nobody uses."""

from dataclasses import replace
from types import MappingProxyType

import dace
from dace.sdfg.nodes import AccessNode
from dace.sdfg.state import SDFGState

from dfcompile.frontend import Coverage, Level, OperatorNode, Program
from dfcompile.lowering.lowering_pass import lowering_pass


@lowering_pass("drop-dead", level=Level.CANONICAL, source="own")
def drop_dead(program: Program) -> Program:
    """Remove operators and views whose results nobody uses, and what only they used."""
    if not _dead_arrays(program.sdfg):
        return program
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    state = sdfg.start_state
    while dead := _dead_arrays(sdfg):
        for array in dead:
            writers = [edge.src for edge in state.in_edges(array)]
            state.remove_node(array)
            for writer in writers:
                if state.out_degree(writer) == 0 and isinstance(writer, OperatorNode):
                    state.remove_node(writer)
        for node in state.nodes():
            if isinstance(node, AccessNode) and state.degree(node) == 0:
                state.remove_node(node)
    return _without_unused(program, sdfg)


def _dead_arrays(sdfg: dace.SDFG) -> list[AccessNode]:
    """Return the access nodes that nobody reads and that can go: all that their writers write is dead."""
    state = sdfg.start_state
    unread = [
        node for node in state.data_nodes()
        if state.out_degree(node) == 0 and state.in_degree(node) and node.desc(sdfg).transient
    ]  # fmt: skip
    return [node for node in unread if all(_is_dead(state, edge.src, unread) for edge in state.in_edges(node))]


def _is_dead(state: SDFGState, writer: dace.nodes.Node, unread: list[AccessNode]) -> bool:
    if isinstance(writer, AccessNode):  # of which the array is a view
        return True
    return all(edge.dst in unread for edge in state.out_edges(writer))


def _without_unused(program: Program, sdfg: dace.SDFG) -> Program:
    used = {node.data for node in sdfg.start_state.data_nodes()}
    border = {port.array for port in (*program.inputs, *program.outputs)}
    for name in [name for name in sdfg.arrays if name not in used | border]:
        sdfg.remove_data(name, validate=False)
    parameters = {name: value for name, value in program.parameters.items() if name in sdfg.arrays}
    before, after = (
        {node.origin for node in graph.start_state.nodes() if isinstance(node, OperatorNode)}
        for graph in (program.sdfg, sdfg)
    )
    nodes = tuple(
        replace(node, coverage=Coverage.FOLDED) if node.name in before - after else node for node in program.nodes
    )
    return replace(program, sdfg=sdfg, parameters=MappingProxyType(parameters), nodes=nodes)

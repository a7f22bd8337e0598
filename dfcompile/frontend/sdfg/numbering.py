"""Identifiers of an SDFG's elements as numbers, so that the same model gives the same bytes."""

import dace
from dace.sdfg.nodes import EntryNode, ExitNode


def number_elements(sdfg: dace.SDFG) -> None:
    """Replace the random identifiers that DaCe gives to elements of an SDFG of one state."""
    state = sdfg.start_state
    sdfg.guid, state.guid = "sdfg", "state"
    for number, node in enumerate(state.nodes()):
        node.guid = f"node-{number}"
        if isinstance(node, (EntryNode, ExitNode)):
            node.map.guid = f"map-{number}"
    for number, edge in enumerate(state.edges()):
        edge.data.guid = f"edge-{number}"

"""Dead nodes and constants: what no output of the model needs."""

from dfcompile.frontend.onnx.draft import Draft


def remove_dead_nodes(draft: Draft) -> Draft:
    """Return the draft without nodes that no output depends on, and without constants that no node reads."""
    needed = set(draft.output_names)
    kept = []
    for node in reversed(draft.proto.graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
            kept.append(node)
    constants = {name: value for name, value in draft.constants.items() if name in needed}
    if len(kept) == len(draft.proto.graph.node) and len(constants) == len(draft.constants):
        return draft
    return draft.replaced(reversed(kept), constants)

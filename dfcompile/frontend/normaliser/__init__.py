"""The normaliser: small passes from a draft to a simpler one, with a record of what became of each node."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dfcompile.frontend.normaliser.constant_folding import fold_constants
from dfcompile.frontend.normaliser.empty_values import check_empty_operands
from dfcompile.frontend.normaliser.functions import expand_functions
from dfcompile.frontend.normaliser.opset import unify_opset
from dfcompile.frontend.normaliser.wiring import copy_border_outputs, remove_dead_nodes, remove_pass_through
from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.program import Coverage, ModelNode
from dfcompile.host.stages import counted

VIEWS = frozenset(["Flatten", "Reshape", "Squeeze", "Unsqueeze"])
# The passes, which return their argument itself if nothing changes; and what a node is that one takes away.
_PASSES: Sequence[tuple[Callable[[Draft], Draft], Coverage]] = (
    # First, since ONNX infers nothing for a graph that has an input or constant among its outputs.
    (copy_border_outputs, Coverage.COSTED),
    (unify_opset, Coverage.FOLDED),
    (expand_functions, Coverage.COSTED),
    (remove_dead_nodes, Coverage.FOLDED),
    (fold_constants, Coverage.FOLDED),
    (remove_pass_through, Coverage.VIEW),
    (remove_dead_nodes, Coverage.FOLDED),
    (check_empty_operands, Coverage.FOLDED),
)


class Normalised(Struct, frozen=True):
    """A normalised draft.

    Attributes:
        draft: what is left to import.
        nodes: every node of the model as it was read, in its order, then those that the passes had to add.
    """

    draft: Draft
    nodes: tuple[ModelNode, ...]


def normalise(draft: Draft) -> Normalised:
    """Return the draft in the form that the importer takes.

    Args:
        draft: with unique node names and in topological order.

    Raises:
        UserError: a pass cannot deal with a node.
    """
    read = {node.name: node.op_type for node in draft.proto.graph.node}
    coverage: dict[str, Coverage] = {}
    for run, removed in counted(_PASSES):
        before = [node.name for node in draft.proto.graph.node]
        draft = run(draft)
        after = {node.name for node in draft.proto.graph.node}
        coverage.update((name, removed) for name in before if name not in after)
    for node in draft.proto.graph.node:
        coverage[node.name] = Coverage.VIEW if node.op_type in VIEWS else Coverage.COSTED
    added = [node for node in draft.proto.graph.node if node.name not in read]
    nodes = [ModelNode(name, op_type, coverage[name]) for name, op_type in read.items()]
    nodes += [ModelNode(node.name, node.op_type, coverage[node.name]) for node in added]
    return Normalised(draft, tuple(nodes))

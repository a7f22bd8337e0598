"""The audit of the part on the model: how many of its nodes are accounted for in which way."""

from collections import Counter
from collections.abc import Sequence

from dfcompile.audit.comparing import expect
from dfcompile.frontend import Coverage, ModelNode
from dfcompile.report.figures import ModelSummary


def audit_model(where: str, summary: ModelSummary, nodes: Sequence[ModelNode]) -> None:
    """Count the nodes of a model anew; every one has to be accounted for.

    Raises:
        VerificationError: naming the figure.
    """
    ways = Counter(node.coverage for node in nodes)
    expect(f"{where}.nodes", summary.nodes, len(nodes))
    expect(f"{where}.nodes_costed", summary.nodes_costed, len(nodes))
    expect(f"{where}.nodes_as_tasks", summary.nodes_as_tasks, ways[Coverage.COSTED])
    expect(f"{where}.nodes_as_views", summary.nodes_as_views, ways[Coverage.VIEW])
    expect(f"{where}.nodes_folded", summary.nodes_folded, ways[Coverage.FOLDED])

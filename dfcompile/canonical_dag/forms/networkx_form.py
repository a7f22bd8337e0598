"""The networkx form of a canonical DAG: the exchange form for other tools."""

import networkx as nx

from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, UNORDERED, CanonicalDag, NodeKind
from dfcompile.canonical_dag.forms.reader import TASK, DagReader
from dfcompile.canonical_dag.forms.reference import Reference, quoted
from dfcompile.errors import UserError


def to_networkx(dag: CanonicalDag) -> "nx.MultiDiGraph[str]":
    """Return a multigraph whose nodes are the node names, in the DAG's order.

    Attributes of the graph: ``name``, ``kernels``, ``tensors``, ``orders``, ``scopes`` (tuples of our types).
    Of a node: ``scope``, ``member`` (absent for a single node), ``kind`` (lower case), ``volume_in``, ``volume_out``,
    ``origin``, ``kernel`` (a name; absent without one). Of an edge: ``number`` (place in the DAG's order), ``volume``,
    ``element_bytes``, ``order``.
    """
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=dag.name)
    graph.graph.update(kernels=dag.kernels, tensors=dag.tensors, orders=dag.orders, scopes=dag.scopes)
    names = [dag.node_name(node) for node in range(dag.nodes_count)]
    for node, name in enumerate(names):
        scope = dag.scopes[dag.node_scope[node]]
        member = int(dag.node_member[node])
        graph.add_node(
            name,
            scope=scope.name,
            kind=NodeKind(dag.kind[node]).name.lower(),
            volume_in=int(dag.volume_in[node]),
            volume_out=int(dag.volume_out[node]),
            origin=scope.origin,
            **({} if member == NO_MEMBER else {"member": member}),
            **({} if scope.kernel == NO_KERNEL else {"kernel": dag.kernels[scope.kernel].name}),
        )
    for edge in range(dag.edges_count):
        graph.add_edge(
            names[dag.edge_source[edge]],
            names[dag.edge_target[edge]],
            number=edge,
            volume=int(dag.edge_volume[edge]),
            distinct=int(dag.edge_distinct[edge]),
            element_bytes=int(dag.edge_element_bytes[edge]),
            order=dag.orders[dag.edge_order[edge]],
        )
    return graph


def from_networkx(graph: "nx.DiGraph[str]") -> CanonicalDag:
    """Build a DAG from a networkx graph with the attributes of `to_networkx`.

    Only the ``volume`` of an edge is needed: a node without ``kind`` is a task, one without ``scope`` is its own; edges
    without ``number`` keep networkx's order. Nodes keep their order. Volumes of nodes are derived, not read.

    Raises:
        UserError: naming the node or the edge.
    """
    reader = DagReader(str(graph.graph.get("name", "dag")))
    for kernel in graph.graph.get("kernels", ()):
        reader.kernel(kernel, f"kernel {kernel.name!r}")
    for tensor in graph.graph.get("tensors", ()):
        reader.tensor(tensor, f"tensor {tensor.name!r}")
    reader.orders(graph.graph.get("orders", ()))
    kernels = graph.graph.get("kernels", ())
    for scope in graph.graph.get("scopes", ()):
        kernel_name = None if scope.kernel == NO_KERNEL else kernels[scope.kernel].name
        reader.scope(scope.name, f"scope {scope.name!r}", kernel_name, scope.origin)
    references: dict[str, str] = {}
    for node, attributes in graph.nodes(data=True):
        name = str(attributes.get("scope", node))
        reference = str(Reference(name, int(attributes["member"]), 1)) if "member" in attributes else quoted(name)
        references[node] = reference
        kind = str(attributes.get("kind", TASK))
        reader.nodes(kind, reference, f"node {str(node)!r}", attributes.get("kernel"), attributes.get("origin"))
    edges = list(graph.edges(data=True))
    edges.sort(key=lambda edge: int(edge[2].get("number", 0)))
    for source, target, attributes in edges:
        where = f"edge {str(source)!r} -> {str(target)!r}"
        volume = attributes.get("volume")
        if volume is None or int(volume) != volume:
            raise UserError(f"{where}: volume {volume!r} against a whole number")
        element_bytes, order = int(attributes.get("element_bytes", 4)), str(attributes.get("order", UNORDERED))
        distinct = int(attributes.get("distinct", volume))
        reader.edges(references[source], references[target], int(volume), where, element_bytes, order, distinct)
    return reader.finish()

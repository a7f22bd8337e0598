"""A pass of canonical DAGs: streams of many elements are stored on the way."""

from dataclasses import dataclass

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, dag_pass


@dag_pass("through-memory", source="mylab24")
@dataclass(frozen=True)
class ThroughMemory:
    """Put a buffer on every edge between two tasks that carries more than ``above`` elements."""

    above: int = 1024

    def __call__(self, dag: CanonicalDag) -> CanonicalDag:
        """Return the DAG with these buffers; itself if there is no such edge."""
        streams = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
        stored = streams & (dag.edge_volume > self.above)
        if not stored.any():
            return dag
        builder = DagBuilder.of(dag)
        for edge in stored.nonzero()[0].tolist():
            buffer = builder.add_memory(builder.add_scope(f"stored-{edge}"))
            builder.split_edge(edge, buffer)
        return builder.finish()

"""The JSON form of a canonical DAG, version ``dfcompile-dag/1``.

An object with ``format``, ``name``, ``kernels``, ``tensors``, ``orders``, ``nodes`` and ``edges``. A record of
``nodes`` is ``{"nodes": "mv[0:576]", "kind": "downsampler", "kernel": …, "origin": …}``, or for a scope without nodes
``{"scope": "mv", …}``; one of ``edges`` is ``{"source": "broadcast", "target": "mv[0:576]", "volume": 150, "bytes": 4,
"order": "[0,1]"}``, or of edges one by one ``{"source": "tree[0,0,1]", "target": "tree[1,2,3]", "volumes":
"64,64,32"}``.
Only ``format``, ``nodes`` and ``edges`` are needed, and in them ``nodes``, ``source``, ``target`` and ``volume``.
References are those of the text form.
"""

from collections.abc import Iterator
from pathlib import Path

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.forms.reader import FORMAT, TASK
from dfcompile.canonical_dag.forms.records import EDGE_FIELDS, read_edges, reader_of, table_records, top_record
from dfcompile.canonical_dag.forms.reference import numbers_text
from dfcompile.canonical_dag.forms.runs import NodeRun, edge_runs, node_runs
from dfcompile.canonical_dag.forms.text_form import parse_dag
from dfcompile.errors import UserError
from dfcompile.host.inputs import read_text
from dfcompile.host.printable import json_text


def read_dag_file(path: Path) -> CanonicalDag:
    """Read a canonical DAG, as text or JSON: its content says which.

    Raises:
        UserError: the file cannot be read, or it holds no canonical DAG; the message names the line or the record.
    """
    return dag_of_file(graph_text(path), path)


def graph_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: {reason}") from error


def dag_of_file(text: str, path: Path) -> CanonicalDag:
    """Return the canonical DAG that the text of a file is.

    Raises:
        UserError: as `read_dag_file`.
    """
    try:
        return read_dag(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


_TOP = ("format", "name", "kernels", "tensors", "orders", "nodes", "edges")
_NODES = ("nodes", "kind", "scope", "kernel", "origin")


def dag_to_json(dag: CanonicalDag) -> str:
    """Return the JSON form, one record per line; `dag_from_json` gives the same DAG back."""
    head = f'{{"format": {json_text(FORMAT)},\n"name": {json_text(dag.name)},\n'
    lists = {
        **{name: list(map(json_text, records)) for name, records in table_records(dag).items()},
        "nodes": [json_text(node_record(run)) for run in node_runs(dag)],
        "edges": list(_edge_records(dag)),
    }
    body = [f'"{name}": [' + ",".join(f"\n{row}" for row in rows) + "]" for name, rows in lists.items()]
    return head + ",\n".join(body) + "}\n"


def dag_from_json(text: str) -> CanonicalDag:
    """Parse the JSON form.

    Raises:
        UserError: naming the record, or the node or edge that breaks an invariant.
    """
    top = top_record(text, _TOP)
    reader = reader_of(top)
    for row in top.rows("nodes", _NODES):
        kernel, origin = row.optional("kernel"), row.optional("origin")
        if "scope" in row:
            reader.scope(row.text("scope"), row.where, kernel, origin)
        else:
            reader.nodes(row.text("kind", TASK), row.text("nodes"), row.where, kernel, origin)
    for row in top.rows("edges", ("source", "target", *EDGE_FIELDS)):
        read_edges(reader, row, row.text("source"), row.text("target"))
    return reader.read()


def read_dag(text: str) -> CanonicalDag:
    """Parse either form: JSON if the text begins with a brace.

    Raises:
        UserError: naming the line or the record.
    """
    text = text.removeprefix("\ufeff")  # some editors begin a file with this mark
    return dag_from_json(text) if text.lstrip().startswith("{") else parse_dag(text)


def node_record(run: NodeRun) -> dict[str, str]:
    """Return the record of nodes, or of a scope without nodes."""
    kind = TASK if run.kind is None else run.kind.name.lower()
    record = {"nodes": str(run.nodes), "kind": kind} if run.nodes.size else {"scope": run.nodes.scope}
    kernel = {} if run.kernel is None else {"kernel": run.kernel}
    return {**record, **kernel, "origin": run.origin}


def _edge_records(dag: CanonicalDag) -> Iterator[str]:
    for run in edge_runs(dag):
        ends = {"source": str(run.source), "target": str(run.target)}
        volume = {"volume": run.volume} if isinstance(run.volume, int) else {"volumes": numbers_text(run.volume)}
        distinct = {} if run.distinct is None else {"distinct": run.distinct}
        yield json_text({**ends, **volume, **distinct, "bytes": run.element_bytes, "order": run.order})

"""The JSON form of a canonical DAG, version ``dfcompile-dag/1``.

An object with ``format``, ``name``, ``kernels``, ``tensors``, ``orders``, ``nodes`` and ``edges``. A record of
``nodes`` is ``{"nodes": "mv[0:576]", "kind": "downsampler", "kernel": …, "origin": …}``, or for a scope without nodes
``{"scope": "mv", …}``; one of ``edges`` is ``{"source": "broadcast", "target": "mv[0:576]", "volume": 150, "bytes": 4,
"order": "[0,1]"}``. Only ``format``, ``nodes`` and ``edges`` are needed, and in them ``nodes``, ``source``, ``target``
and ``volume``. References are those of the text form.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from dfcompile.canonical_dag.builder import UNORDERED
from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.forms.loops_form import format_loops, parse_loops
from dfcompile.canonical_dag.forms.reader import FORMAT, TASK, DagReader
from dfcompile.canonical_dag.forms.reference import check_characters, shortened
from dfcompile.canonical_dag.forms.runs import edge_runs, node_runs
from dfcompile.canonical_dag.forms.text_form import parse_dag
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor, KernelVariant, TensorRole
from dfcompile.errors import UserError, nearest
from dfcompile.host.printable import json_text

Record = Mapping[str, object]

_LARGEST_NUMBER = 2**63 - 1

_TOP = ("format", "name", "kernels", "tensors", "orders", "nodes", "edges")
_KERNEL = (
    "name", "op", "origin", "expansion", "variant", "outer", "m", "k", "n",
    "memory_bytes", "inputs", "outputs", "loops",
)  # fmt: skip
_TENSOR = ("name", "elements", "element_bytes", "role")
_NODES = ("nodes", "kind", "scope", "kernel", "origin")
_EDGES = ("source", "target", "volume", "distinct", "bytes", "order")


def dag_to_json(dag: CanonicalDag) -> str:
    """Return the JSON form, one record per line; `dag_from_json` gives the same DAG back."""
    head = f'{{"format": {json_text(FORMAT)},\n"name": {json_text(dag.name)},\n'
    lists = {
        "kernels": [json_text({**asdict(kernel), "loops": format_loops(kernel.loops)}) for kernel in dag.kernels],
        "tensors": [json_text(asdict(tensor)) for tensor in dag.tensors],
        "orders": [json_text(order) for order in dag.orders],
        "nodes": list(_node_records(dag)),
        "edges": list(_edge_records(dag)),
    }
    body = [f'"{name}": [' + ",".join(f"\n{row}" for row in rows) + "]" for name, rows in lists.items()]
    return head + ",\n".join(body) + "}\n"


def dag_from_json(text: str) -> CanonicalDag:
    """Parse the JSON form.

    Raises:
        UserError: naming the record, or the node or edge that breaks an invariant.
    """
    try:
        top = _record(json.loads(text, object_pairs_hook=_unique_fields), "file", _TOP)
    except (ValueError, RecursionError) as error:
        raise UserError(f"json: {error} against a JSON object") from None
    if top.get("format") != FORMAT:
        raise UserError(f"format: {top.get('format')!r} against {FORMAT!r}")
    reader = DagReader(_text(top, "name", "file", "dag"))
    for where, row in _rows(top, "kernels", _KERNEL):
        reader.kernel(_kernel(row, where), where)
    for where, row in _rows(top, "tensors", _TENSOR):
        reader.tensor(_tensor(row, where), where)
    reader.orders(_texts(top, "orders", "file"))
    for where, row in _rows(top, "nodes", _NODES):
        _read_nodes(reader, row, where)
    for where, row in _rows(top, "edges", _EDGES):
        source, target = _text(row, "source", where), _text(row, "target", where)
        volume, element_bytes = _number(row, "volume", where), _number(row, "bytes", where, 4)
        distinct = _number(row, "distinct", where, volume)
        reader.edges(source, target, volume, where, element_bytes, _text(row, "order", where, UNORDERED), distinct)
    return reader.finish()


def read_dag(text: str) -> CanonicalDag:
    """Parse either form: JSON if the text begins with a brace.

    Raises:
        UserError: naming the line or the record.
    """
    text = text.removeprefix("\ufeff")  # some editors begin a file with this mark
    return dag_from_json(text) if text.lstrip().startswith("{") else parse_dag(text)


def _node_records(dag: CanonicalDag) -> Iterator[str]:
    for run in node_runs(dag):
        record = {"nodes": str(run.nodes), "kind": run.kind.name.lower()} if run.nodes.size else {}
        scope = {} if run.nodes.size else {"scope": run.nodes.scope}
        kernel = {} if run.kernel is None else {"kernel": run.kernel}
        yield json_text({**record, **scope, **kernel, "origin": run.origin})


def _edge_records(dag: CanonicalDag) -> Iterator[str]:
    for run in edge_runs(dag):
        ends = {"source": str(run.source), "target": str(run.target)}
        distinct = {} if run.distinct == run.volume else {"distinct": run.distinct}
        yield json_text({**ends, "volume": run.volume, **distinct, "bytes": run.element_bytes, "order": run.order})


def _read_nodes(reader: DagReader, row: Record, where: str) -> None:
    kernel = _text(row, "kernel", where) if "kernel" in row else None
    origin = _text(row, "origin", where) if "origin" in row else None
    if "scope" in row:
        reader.scope(_text(row, "scope", where), where, kernel, origin)
    else:
        reader.nodes(_text(row, "kind", where, TASK), _text(row, "nodes", where), where, kernel, origin)


def _kernel(row: Record, where: str) -> Kernel:
    name, op, origin, expansion = (_text(row, key, where) for key in ("name", "op", "origin", "expansion"))
    outer, m, k, n = (_number(row, key, where) for key in ("outer", "m", "k", "n"))
    inputs, outputs = (_texts(row, key, where) for key in ("inputs", "outputs"))
    variant = _text(row, "variant", where)
    if variant not in list(KernelVariant):
        raise UserError(f"{where}: variant {variant!r} against {', '.join(KernelVariant)}")
    memory_bytes = _number(row, "memory_bytes", where, default=0)
    loops = parse_loops(_text(row, "loops", where, ""), where)
    return Kernel(
        name, op, origin, expansion, KernelVariant(variant), outer, m, k, n, inputs, outputs, memory_bytes, loops
    )  # fmt: skip


def _tensor(row: Record, where: str) -> KernelTensor:
    role = _text(row, "role", where)
    if role not in list(TensorRole):
        raise UserError(f"{where}: role {role!r} against {', '.join(TensorRole)}")
    name, elements = _text(row, "name", where), _number(row, "elements", where)
    return KernelTensor(name, elements, _number(row, "element_bytes", where), TensorRole(role))


def _rows(top: Record, name: str, known: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    for place, row in enumerate(_list(top, name)):
        where = f"{name}[{place}]"
        yield where, _record(row, where, known)


def _record(value: object, where: str, known: tuple[str, ...]) -> Record:
    if not isinstance(value, dict):
        raise UserError(f"{where}: {type(value).__name__} against an object")
    for key in value:
        if key not in known:
            raise UserError(f"{where}: unknown field {key!r}{nearest(str(key), known)}")
    return value


def _unique_fields(fields: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(fields)
    if len(record) < len(fields):
        count = Counter(name for name, _ in fields)
        twice = next(name for name in record if count[name] > 1)
        raise UserError(f"json: field {shortened(twice)!r} given twice in one object against once")
    return record


def _list(record: Record, name: str) -> list[object]:
    value = record.get(name, [])
    if not isinstance(value, list):
        raise UserError(f"{name}: {type(value).__name__} against a list")
    return value


def _texts(record: Record, name: str, where: str) -> tuple[str, ...]:
    return tuple(_checked(value, f"{name}[{place}]", where) for place, value in enumerate(_list(record, name)))


def _text(record: Record, name: str, where: str, default: str | None = None) -> str:
    return _checked(record.get(name, default), name, where)


def _checked(value: object, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where}: {name} {shortened(repr(value))} against a text")
    check_characters(value, where)
    return value


def _number(record: Record, name: str, where: str, default: int | None = None) -> int:
    value = record.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserError(f"{where}: {name} {shortened(repr(value))} against a whole number")
    if abs(value) > _LARGEST_NUMBER:
        raise UserError(f"{where}: {name} {shortened(repr(value))} against at most {_LARGEST_NUMBER}")
    return value

"""The text form of a canonical DAG: one line per family of nodes and per family of edges.

::

    dfcompile-dag/1 conv1
    kernel conv1.matmul op=MatMul origin=conv1 expansion=mv variant=gemm_input1_weight outer=1 m=6 k=25 n=576 …
        outputs=C
    tensor A elements=150 bytes=4 role=parameter
    buffer A
    elementwise conv1.matmul.broadcast kernel=conv1.matmul origin=conv1
    downsampler conv1.matmul.mv[0:576] kernel=conv1.matmul origin=conv1
    edge A -> conv1.matmul.broadcast volume=150 order=[0,1]
    edge conv1.matmul.broadcast -> conv1.matmul.mv[0:576] volume=150 order=[0,1]

(the kernel is one line). ``task`` stands for whatever kind the volumes make of a node. ``bytes`` of an element are 4,
``order`` is ``any`` and ``distinct`` the volume unless given; an ``origin`` is the scope's name unless given. ``#``
starts a comment line. Edges without a pattern are a list of their ends, and where these differ of their ``volumes``:
``edge tree[0,0,1] -> tree[1,2,3] volumes=64,64,32``. A name with a blank or one of ``"[]=,#`` is written as a JSON
string.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from dfcompile.canonical_dag.dag import UNORDERED, CanonicalDag, Int64
from dfcompile.canonical_dag.forms.loops_form import format_loops, parse_loops
from dfcompile.canonical_dag.forms.reader import FORMAT, TASK, DagReader
from dfcompile.canonical_dag.forms.reference import (
    items,
    numbers_text,
    parse_numbers,
    quoted,
    shortened,
    tokens,
    unquoted,
)
from dfcompile.canonical_dag.forms.runs import EdgeRun, NodeRun, edge_runs, node_runs
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor, KernelVariant, TensorRole
from dfcompile.errors import UserError, nearest

Choice = TypeVar("Choice")

# Most lines of a file with an edge each; it takes a third of the time of words and fields.
_PLAIN_EDGE = re.compile(r'edge ([^\s"]+) -> ([^\s"]+) volume=([0-9]{1,18})')


def format_dag(dag: CanonicalDag) -> str:
    """Return the text form; `parse_dag` gives the same DAG back."""
    return "\n".join(_lines(dag)) + "\n"


def parse_dag(text: str) -> CanonicalDag:
    """Parse the text form.

    Raises:
        UserError: naming the line, or the node or edge that breaks an invariant.
    """
    lines = text.splitlines()
    words = tokens(lines[0]) if lines else []
    if len(words) != 2 or words[0] != FORMAT:
        found = f"{lines[0][:60]!r}" if lines else "nothing"
        raise UserError(f"line 1: {found} against '{FORMAT} NAME'")
    reader = DagReader(unquoted(words[1], "line 1"))
    for number, line in enumerate(lines[1:], start=2):
        if plain := _PLAIN_EDGE.fullmatch(line):
            reader.edges(plain[1], plain[2], int(plain[3]), f"line {number}")
        elif words := tokens(line):
            _parse_line(reader, words, f"line {number}")
    return reader.finish()


def _lines(dag: CanonicalDag) -> Iterator[str]:
    yield f"{FORMAT} {quoted(dag.name)}"
    for kernel in dag.kernels:
        yield _kernel_line(kernel)
    for tensor in dag.tensors:
        yield f"tensor {quoted(tensor.name)} elements={tensor.elements} bytes={tensor.element_bytes} role={tensor.role}"
    used = list(dict.fromkeys(dag.edge_order.tolist()))
    if used != list(range(len(dag.orders))):
        yield from (f"order {_order_token(order)}" for order in dag.orders)
    for nodes in node_runs(dag):
        yield _nodes_line(nodes)
    for edges in edge_runs(dag):
        yield _edges_line(edges)


def _kernel_line(kernel: Kernel) -> str:
    sizes = f"outer={kernel.outer} m={kernel.m} k={kernel.k} n={kernel.n}"
    memory = f" memory_bytes={kernel.memory_bytes}" if kernel.memory_bytes else ""
    loops = f" loops={quoted(format_loops(kernel.loops))}" if kernel.loops else ""
    inputs, outputs = (",".join(map(quoted, names)) for names in (kernel.inputs, kernel.outputs))
    return (
        f"kernel {quoted(kernel.name)} op={quoted(kernel.op)} origin={quoted(kernel.origin)} "
        f"expansion={quoted(kernel.expansion)} variant={kernel.variant} {sizes} "
        f"inputs={inputs} outputs={outputs}{memory}{loops}"
    )


def _nodes_line(run: NodeRun) -> str:
    kernel = "" if run.kernel is None else f" kernel={quoted(run.kernel)}"
    origin = "" if run.origin == run.nodes.scope else f" origin={quoted(run.origin)}"
    if run.nodes.size == 0:
        return f"scope {quoted(run.nodes.scope)}{kernel}{origin}"
    return f"{TASK if run.kind is None else run.kind.name.lower()} {run.nodes}{kernel}{origin}"


def _edges_line(run: EdgeRun) -> str:
    element_bytes = "" if run.element_bytes == 4 else f" bytes={run.element_bytes}"
    order = "" if run.order == UNORDERED else f" order={_order_token(run.order)}"
    distinct = "" if run.distinct is None else f" distinct={run.distinct}"
    volume = f"volume={run.volume}" if isinstance(run.volume, int) else f"volumes={numbers_text(run.volume)}"
    return f"edge {run.source} -> {run.target} {volume}{distinct}{element_bytes}{order}"


def _order_token(order: str) -> str:
    bare = order and not any(character.isspace() or character in '"#' for character in order)
    return order if bare else quoted(order)


def _parse_line(reader: DagReader, words: list[str], where: str) -> None:
    if words[0].startswith("#"):
        return
    if words[0] == "edge":
        _parse_edge(reader, words, where)
        return
    if len(words) < 2:
        raise UserError(f"{where}: {words[0]!r} alone against a name behind it")
    parse = _RECORDS.get(words[0], _parse_nodes)
    parse(reader, words, where)


def _parse_edge(reader: DagReader, words: list[str], where: str) -> None:
    if len(words) < 5 or words[2] != "->":
        raise UserError(f"{where}: {' '.join(words[:5])!r} against 'edge FROM -> TO volume=N'")
    fields = _fields(words[4:], ("volume", "volumes", "distinct", "bytes", "order"), where)
    order = unquoted(fields.get("order", UNORDERED), where)
    volume: int | Int64
    if "volumes" in fields and "volume" not in fields:
        volume = parse_numbers(fields["volumes"], "volumes", where)
    elif "volumes" in fields:
        raise UserError(f"{where}: 'volume' and 'volumes' against one of them")
    else:
        volume = _number(fields, "volume", f"{where}: edge {shortened(words[1])!r} -> {shortened(words[3])!r}")
    element_bytes = _number(fields, "bytes", where) if "bytes" in fields else 4
    distinct = _number(fields, "distinct", where) if "distinct" in fields else None
    reader.edges(words[1], words[3], volume, where, element_bytes, order, distinct)


def _parse_nodes(reader: DagReader, words: list[str], where: str) -> None:
    kernel, origin = _scope_fields(words, where)
    reader.nodes(words[0], words[1], where, kernel, origin)


def _parse_scope(reader: DagReader, words: list[str], where: str) -> None:
    kernel, origin = _scope_fields(words, where)
    reader.scope(unquoted(words[1], where), where, kernel, origin)


def _parse_order(reader: DagReader, words: list[str], where: str) -> None:
    _fields(words[2:], (), where)
    reader.orders([unquoted(words[1], where)])


def _parse_tensor(reader: DagReader, words: list[str], where: str) -> None:
    fields = _fields(words[2:], ("elements", "bytes", "role"), where)
    name = unquoted(words[1], where)
    role = _choice(fields, "role", {role.value: role for role in TensorRole}, where)
    reader.tensor(KernelTensor(name, _number(fields, "elements", where), _number(fields, "bytes", where), role), where)


def _parse_kernel(reader: DagReader, words: list[str], where: str) -> None:
    texts, sizes, lists = ("op", "origin", "expansion"), ("outer", "m", "k", "n"), ("inputs", "outputs")
    fields = _fields(words[2:], (*texts, "variant", *sizes, "memory_bytes", "loops", *lists), where)
    op, origin, expansion = (unquoted(_field(fields, key, where), where) for key in texts)
    outer, m, k, n = (_number(fields, key, where) for key in sizes)
    inputs, outputs = (items(_field(fields, key, where), where) for key in lists)
    variant = _choice(fields, "variant", {variant.value: variant for variant in KernelVariant}, where)
    name = unquoted(words[1], where)
    memory_bytes = _number(fields, "memory_bytes", where) if "memory_bytes" in fields else 0
    loops = parse_loops(unquoted(fields.get("loops", ""), where), where)
    reader.kernel(
        Kernel(name, op, origin, expansion, variant, outer, m, k, n, inputs, outputs, memory_bytes, loops), where
    )


_RECORDS: Mapping[str, Callable[[DagReader, list[str], str], None]] = {
    "kernel": _parse_kernel,
    "tensor": _parse_tensor,
    "order": _parse_order,
    "scope": _parse_scope,
}


def _scope_fields(words: list[str], where: str) -> tuple[str | None, str | None]:
    fields = _fields(words[2:], ("kernel", "origin"), where)
    kernel, origin = fields.get("kernel"), fields.get("origin")
    return kernel and unquoted(kernel, where), origin and unquoted(origin, where)


def _fields(words: list[str], known: tuple[str, ...], where: str) -> dict[str, str]:
    fields = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            expected = ", ".join(f"{name}=…" for name in known) or "the end of the line"
            raise UserError(f"{where}: {word!r} against {expected}{nearest(key, known)}")
        if key in fields:
            raise UserError(f"{where}: {key!r} given twice against once")
        fields[key] = value
    return fields


def _field(fields: Mapping[str, str], key: str, where: str) -> str:
    if key not in fields:
        raise UserError(f"{where}: no {key!r} against {key}=…")
    return fields[key]


def _number(fields: Mapping[str, str], key: str, where: str) -> int:
    text = _field(fields, key, where)
    if len(text) < 20 and text.isascii() and text.removeprefix("-").isdecimal():
        return int(text)
    raise UserError(f"{where}: {key} {shortened(text)!r} against a whole number")


def _choice(fields: Mapping[str, str], key: str, known: Mapping[str, Choice], where: str) -> Choice:
    text = _field(fields, key, where)
    if text not in known:
        raise UserError(f"{where}: {key} {text!r} against {', '.join(known)}{nearest(text, known)}")
    return known[text]

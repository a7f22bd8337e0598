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
from collections.abc import Iterator

from dfcompile.canonical_dag.dag import UNORDERED, CanonicalDag
from dfcompile.canonical_dag.forms.reader import FORMAT, TASK, DagReader
from dfcompile.canonical_dag.forms.records import EDGE_FIELDS, KERNEL_FIELDS, Fields, format_loops, read_edges
from dfcompile.canonical_dag.forms.reference import numbers_text, quoted, shortened, unquoted
from dfcompile.canonical_dag.forms.runs import NodeRun, edge_runs, node_runs
from dfcompile.errors import UserError, nearest

_TOKEN = re.compile(r'(?:"(?:\\.|[^"\\])*"|\S)+')
_ITEM = re.compile(r'"(?:\\.|[^"\\])*"|[^,]+')
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
    words = _tokens(lines[0]) if lines else []
    if len(words) != 2 or words[0] != FORMAT:
        found = f"{lines[0][:60]!r}" if lines else "nothing"
        raise UserError(f"line 1: {found} against '{FORMAT} NAME'")
    reader = DagReader(unquoted(words[1], "line 1"))
    for number, line in enumerate(lines[1:], start=2):
        if plain := _PLAIN_EDGE.fullmatch(line):
            reader.edges(plain[1], plain[2], int(plain[3]), f"line {number}")
        elif words := _tokens(line):
            _parse_line(reader, words, f"line {number}")
    return reader.read()


def _tokens(line: str) -> list[str]:
    """Split a line at blanks outside strings."""
    return _TOKEN.findall(line) if '"' in line else line.split()


def _lines(dag: CanonicalDag) -> Iterator[str]:
    yield f"{FORMAT} {quoted(dag.name)}"
    for kernel in dag.kernels:
        sizes = f"outer={kernel.outer} m={kernel.m} k={kernel.k} n={kernel.n}"
        memory = f" memory_bytes={kernel.memory_bytes}" if kernel.memory_bytes else ""
        loops = f" loops={quoted(format_loops(kernel.loops))}" if kernel.loops else ""
        inputs, outputs = (",".join(map(quoted, names)) for names in (kernel.inputs, kernel.outputs))
        yield (
            f"kernel {quoted(kernel.name)} op={quoted(kernel.op)} origin={quoted(kernel.origin)} "
            f"expansion={quoted(kernel.expansion)} variant={kernel.variant} {sizes} "
            f"inputs={inputs} outputs={outputs}{memory}{loops}"
        )
    for tensor in dag.tensors:
        yield f"tensor {quoted(tensor.name)} elements={tensor.elements} bytes={tensor.element_bytes} role={tensor.role}"
    used = list(dict.fromkeys(dag.edge_order.tolist()))
    if used != list(range(len(dag.orders))):
        yield from (f"order {_order_token(order)}" for order in dag.orders)
    for nodes in node_runs(dag):
        yield _nodes_line(nodes)
    for run in edge_runs(dag):
        element_bytes = "" if run.element_bytes == 4 else f" bytes={run.element_bytes}"
        order = "" if run.order == UNORDERED else f" order={_order_token(run.order)}"
        distinct = "" if run.distinct is None else f" distinct={run.distinct}"
        volume = f"volume={run.volume}" if isinstance(run.volume, int) else f"volumes={numbers_text(run.volume)}"
        yield f"edge {run.source} -> {run.target} {volume}{distinct}{element_bytes}{order}"


def _nodes_line(run: NodeRun) -> str:
    kernel = "" if run.kernel is None else f" kernel={quoted(run.kernel)}"
    origin = "" if run.origin == run.nodes.scope else f" origin={quoted(run.origin)}"
    if run.nodes.size == 0:
        return f"scope {quoted(run.nodes.scope)}{kernel}{origin}"
    return f"{TASK if run.kind is None else run.kind.name.lower()} {run.nodes}{kernel}{origin}"


def _order_token(order: str) -> str:
    bare = order and not any(character.isspace() or character in '"#' for character in order)
    return order if bare else quoted(order)


class _Words(Fields):
    """The fields of a line: words like ``volume=150``."""

    def __init__(self, words: list[str], known: tuple[str, ...], where: str) -> None:
        self._words: dict[str, str] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals or key not in known:
                expected = ", ".join(f"{name}=…" for name in known) or "the end of the line"
                raise UserError(f"{where}: {word!r} against {expected}{nearest(key, known)}")
            if key in self._words:
                raise UserError(f"{where}: {key!r} given twice against once")
            self._words[key] = value
        super().__init__(self._words, where, known)

    def text(self, name: str, default: str | None = None) -> str:
        return unquoted(self._word(name, default), self.where)

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(unquoted(item, self.where) for item in _ITEM.findall(self._word(name)))

    def number(self, name: str, default: int | None = None, where: str | None = None) -> int:
        text = self._word(name, None if default is None else str(default), where)
        if len(text) < 20 and text.isascii() and text.removeprefix("-").isdecimal():
            return int(text)
        raise UserError(f"{where or self.where}: {name} {shortened(text)!r} against a whole number")

    def _word(self, name: str, default: str | None = None, where: str | None = None) -> str:
        word = self._words.get(name, default)
        if word is None:
            raise UserError(f"{where or self.where}: no {name!r} against {name}=…")
        return word


def _parse_line(reader: DagReader, words: list[str], where: str) -> None:
    if words[0].startswith("#"):
        return
    if words[0] == "edge":
        if len(words) < 5 or words[2] != "->":
            raise UserError(f"{where}: {' '.join(words[:5])!r} against 'edge FROM -> TO volume=N'")
        ends = f"edge {shortened(words[1])!r} -> {shortened(words[3])!r}"
        read_edges(reader, _Words(words[4:], EDGE_FIELDS, where), words[1], words[3], f"{where}: {ends}")
        return
    if len(words) < 2:
        raise UserError(f"{where}: {words[0]!r} alone against a name behind it")
    fields = _Words(words[2:], _FIELDS.get(words[0], _SCOPE_FIELDS), where)
    match words[0]:
        case "kernel":
            reader.kernel(fields.kernel(unquoted(words[1], where)), where)
        case "tensor":
            reader.tensor(fields.tensor(unquoted(words[1], where), "bytes"), where)
        case "order":
            reader.add_order(unquoted(words[1], where))
        case "scope":
            reader.scope(unquoted(words[1], where), where, fields.optional("kernel"), fields.optional("origin"))
        case kind:
            reader.nodes(kind, words[1], where, fields.optional("kernel"), fields.optional("origin"))


_SCOPE_FIELDS = ("kernel", "origin")
_FIELDS = {"kernel": KERNEL_FIELDS, "tensor": ("elements", "bytes", "role"), "order": ()}

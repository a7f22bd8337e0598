"""The pass fuse-maps: a map scope of one operand is computed where its result is read."""

import ast
from collections.abc import Mapping
from math import prod

import dace
import networkx as nx
import numpy as np
from dace.data import View
from dace.properties import CodeBlock
from dace.sdfg.nodes import AccessNode, MapEntry, MapExit, Tasklet
from dace.sdfg.state import SDFGState
from msgspec import Struct

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.canonical_dag.kernel import Digit, Kernel
from dfcompile.frontend import Level, Program, WholeMemlets
from dfcompile.frontend.sdfg.numbering import number_elements
from dfcompile.lowering.declared import is_materialised
from dfcompile.lowering.expression_tree import is_readable
from dfcompile.lowering.expressions import stored, substitute
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


@lowering_pass("fuse-maps", level=Level.MAPS, source="own")
def fuse_maps(program: Program) -> Program:
    """Compute a map scope of one operand where its result is read, if one scope alone reads that, each element once.

    ``t[j, i] = f(x[i, j]); y[i] += g(t[j, i])`` becomes ``y[i] += g(f(x[i, j]))``, whatever the order of the loops:
    so a transposition, a cast or an activation needs no tasks of its own. An array that is an output, in memory, or
    seen through a view stays, and so does one whose scope is a part of an operator.
    """
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    graph = _Scopes(sdfg)
    position = {node: number for number, node in enumerate(graph.state.nodes())}
    ordered = list(nx.lexicographical_topological_sort(graph.state.nx, key=position.__getitem__))
    fused = [node for node in ordered if isinstance(node, AccessNode) and graph.fuse(node)]
    if not fused:
        return program
    number_elements(sdfg)
    return replace(program, sdfg=sdfg)


class _Scope(Struct, frozen=True, eq=False):
    """A map scope of one tasklet."""

    entry: MapEntry
    tasklet: Tasklet
    exit: MapExit
    kernel: Kernel

    @property
    def extents(self) -> Mapping[str, int]:
        """Of the loops."""
        ends = (int(last) + 1 for _, last, _ in self.entry.map.range.ranges)
        return dict(zip(map(str, self.entry.map.params), ends, strict=True))


class _Scopes:
    """The map scopes of a program, two of which can become one."""

    def __init__(self, sdfg: dace.SDFG) -> None:
        self._sdfg = sdfg
        self.state: SDFGState = sdfg.start_state
        self._whole = WholeMemlets(sdfg)
        self._access: dict[str, list[AccessNode]] = {}
        self._tasklets: dict[str, list[Tasklet]] = {}  # by kernel
        for node in self.state.nodes():
            if isinstance(node, AccessNode):
                self._access.setdefault(node.data, []).append(node)
            elif isinstance(node, Tasklet):
                kernel = Annotation.of_location(node.location, node.label).kernel
                if kernel is not None:
                    self._tasklets.setdefault(kernel.name, []).append(node)

    def fuse(self, between: AccessNode) -> bool:
        """Join the scope that writes an array with the one that reads it, if possible; return whether it was."""
        found = self._around(between)
        if found is None:
            return False
        producer, consumer = found
        (read,) = self.state.in_edges(producer.tasklet)
        (write,) = self.state.out_edges(producer.tasklet)
        (use,) = (edge for edge in self.state.in_edges(consumer.tasklet) if edge.data.data == between.data)
        indices = self._composed(producer, consumer, (read.data, write.data, use.data))
        code = None if indices is None else self._code(producer, consumer, (read, use.dst_conn))
        kernel = self._kernel(producer, consumer.kernel, read.data, write.data)
        if indices is None or code is None or kernel is None:
            return False
        (source,) = self._access[read.data.data]
        self._connect(source, consumer, use, indices)
        consumer.tasklet.code = CodeBlock(code)
        for tasklet in self._tasklets[kernel.name]:
            annotation = Annotation.of_location(tasklet.location, tasklet.label)
            tasklet.location = replace(annotation, kernel=kernel).location()
        self._remove(producer, between, consumer)
        return True

    def _around(self, between: AccessNode) -> tuple[_Scope, _Scope] | None:
        """Return the scopes that write and read an array that nobody else sees."""
        array, state = self._sdfg.arrays[between.data], self.state
        is_plain = array.transient and not isinstance(array, View) and not is_materialised(array)
        into, out = state.in_edges(between), state.out_edges(between)
        if not is_plain or len(into) != 1 or len(out) != 1 or len(self._access[between.data]) > 1:
            return None
        if not (isinstance(into[0].src, MapExit) and isinstance(out[0].dst, MapEntry)) or into[0].data.wcr is not None:
            return None
        producer, consumer = self._scope(state.entry_node(into[0].src)), self._scope(out[0].dst)
        if producer is None or consumer is None or len(self._tasklets[producer.kernel.name]) > 1:
            return None
        reads, writes = state.in_edges(producer.tasklet), state.out_edges(producer.tasklet)
        uses = [edge for edge in state.in_edges(consumer.tasklet) if edge.data.data == between.data]
        alone = len(reads) == len(writes) == len(uses) == 1 and not reads[0].data.is_empty()
        return (producer, consumer) if alone and self._is_never_rewritten(reads[0].data.data) else None

    def _scope(self, entry: MapEntry) -> _Scope | None:
        (tasklet,) = dict.fromkeys(edge.dst for edge in self.state.out_edges(entry))
        annotation = Annotation.of_location(tasklet.location, tasklet.label)
        if annotation.kernel is None or annotation.is_initialisation:
            return None
        return _Scope(entry, tasklet, self.state.exit_node(entry), annotation.kernel)

    def _is_never_rewritten(self, name: str) -> bool:
        """Whether an array, and what it is a view of, has the same content wherever it is read."""
        (node, *others) = self._access[name]
        shown = [edge.src.data for edge in self.state.in_edges(node) if edge.dst_conn == "views"]
        return not others and all(map(self._is_never_rewritten, shown))

    def _composed(
        self, producer: _Scope, consumer: _Scope, memlets: tuple[dace.Memlet, dace.Memlet, dace.Memlet]
    ) -> str | None:
        """Return where the consumer finds what the producer reads; ``None`` unless all three see each element once."""
        read, write, use = memlets
        made, wanted = producer.extents, consumer.extents
        of_read, of_write = _loops_of(read, made), _loops_of(write, made)
        of_use = _loops_of(use, wanted)
        if of_read is None or of_write is None or of_use is None:
            return None
        elements = prod(self._shape(write.data))
        if {prod(made.values()), prod(wanted.values()), prod(self._shape(read.data))} != {elements}:
            return None
        place = {loop: used for loop, used in zip(of_write, of_use, strict=True) if loop is not None}
        return ", ".join("0" if loop is None else str(place.get(loop) or "0") for loop in of_read)

    def _code(
        self,
        producer: _Scope,
        consumer: _Scope,
        joined: tuple["dace.sdfg.graph.MultiConnectorEdge[dace.Memlet]", str],
    ) -> str | None:
        read, variable = joined
        inner, outer = _assigned(producer.tasklet), _assigned(consumer.tasklet)
        if inner is None or outer is None:
            return None
        (write,) = self.state.out_edges(producer.tasklet)
        inside = substitute(inner[1], {read.dst_conn: variable})
        kept = stored(inside, self._tensor(write.data.data), [self._tensor(read.data.data)])
        expression = substitute(outer[1], {variable: kept})
        return f"{outer[0]} = {expression}" if is_readable(expression) else None

    def _kernel(self, producer: _Scope, kernel: Kernel, read: dace.Memlet, write: dace.Memlet) -> Kernel | None:
        """Return the kernel of the reader with what the writer reads as its operand."""
        is_one = producer.kernel.inputs == (read.data,) and producer.kernel.outputs == (write.data,)
        if not is_one or producer.kernel.variant.is_gemm or kernel.inputs.count(write.data) != 1:
            return None
        at = kernel.inputs.index(write.data)
        inputs = (*kernel.inputs[:at], read.data, *kernel.inputs[at + 1 :])
        moved = [self._moved(loop.inputs[at], producer, read, write) for loop in kernel.loops]
        loops = tuple(
            replace(loop, inputs=(*loop.inputs[:at], digit, *loop.inputs[at + 1 :]))
            for loop, digit in zip(kernel.loops, moved, strict=True)
        )
        is_known = all(
            (digit is None) == (loop.inputs[at] is None) for loop, digit in zip(kernel.loops, moved, strict=True)
        )
        return replace(kernel, inputs=inputs, loops=loops if is_known else ())

    def _moved(self, digit: Digit | None, producer: _Scope, read: dace.Memlet, write: dace.Memlet) -> Digit | None:
        """Return where a loop that moves in the result of a scope moves in its operand; ``None`` if not known."""
        of_read, of_write = _loops_of(read, producer.extents), _loops_of(write, producer.extents)
        if digit is None or of_read is None or of_write is None:
            return None
        target, source = self._strides(write.data), self._strides(read.data)
        for axis, loop in enumerate(of_write):
            whole = producer.extents.get(loop or "", 1) * target[axis]
            if loop is not None and whole > 1 and target[axis] <= digit.stride < whole:
                place = of_read.index(loop)
                return Digit(source[place] * (digit.stride // target[axis]), place)
        return None

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(size) for size in self._sdfg.arrays[name].shape)

    def _strides(self, name: str) -> tuple[int, ...]:
        shape = self._shape(name)
        return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def _tensor(self, name: str) -> Tensor:
        return Tensor(name, self._shape(name), np.dtype(self._sdfg.arrays[name].dtype.type).name)

    def _connect(
        self,
        source: AccessNode,
        consumer: _Scope,
        use: "dace.sdfg.graph.MultiConnectorEdge[dace.Memlet]",
        indices: str,
    ) -> None:
        entry, name = consumer.entry, source.data
        if f"IN_{name}" not in entry.in_connectors:
            entry.add_in_connector(f"IN_{name}")
            entry.add_out_connector(f"OUT_{name}")
            self.state.add_edge(source, None, entry, f"IN_{name}", self._whole.of(name))
        self.state.remove_edge(use)
        memlet = self._whole.element(name, indices or "0")
        self.state.add_edge(entry, f"OUT_{name}", consumer.tasklet, use.dst_conn, memlet)

    def _remove(self, producer: _Scope, between: AccessNode, consumer: _Scope) -> None:
        for node in (producer.entry, producer.tasklet, producer.exit, between):
            self.state.remove_node(node)
        consumer.entry.remove_in_connector(f"IN_{between.data}")
        consumer.entry.remove_out_connector(f"OUT_{between.data}")
        self._sdfg.remove_data(between.data, validate=False)
        self._tasklets.pop(producer.kernel.name)
        self._access.pop(between.data)


def _loops_of(memlet: dace.Memlet, extents: Mapping[str, int]) -> tuple[str | None, ...] | None:
    """Return the loop that each dimension of an access is; ``None`` unless each loop is one, with other elements."""
    found: list[str | None] = []
    for begin, end, _ in memlet.subset.ndrange():
        index = str(begin)
        if begin != end or index not in ("0", *extents):
            return None
        found.append(None if index == "0" else index)
    loops = [loop for loop in found if loop is not None]
    is_once = len(loops) == len(set(loops)) and all(name in loops or extent == 1 for name, extent in extents.items())
    return tuple(found) if is_once else None


def _assigned(tasklet: Tasklet) -> tuple[str, str] | None:
    """Return the variable and the expression of a tasklet that assigns one; ``None`` of any other."""
    statements = ast.parse(tasklet.code.as_string).body
    match statements:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return name, ast.unparse(value)
    return None

"""What the tasks of a circuit compute, from the loop nests that they are: operands, their order and places, results.

A task reads what its iterations need in their order, and the n-th element that it writes needs no more than it has read
by then, if what is accumulated is innermost. Where it is not, elements are complete in another order; such tasks write
to memory alone, which nobody reads before they end.
"""

from collections.abc import Mapping, Sequence
from itertools import islice, product
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph, flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.canonical_dag.extraction.scopes import Access
from dfcompile.canonical_dag.extraction.traversal import Traversal
from dfcompile.errors import UserError
from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.nests.program import Nest, NestProgram, View, root_of, words_of
from dfcompile.rtl.arithmetic import WORD_BITS, Statements
from dfcompile.rtl.circuit import Circuit, Family


class Operand(Struct, frozen=True):
    """What each iteration reads by one variable.

    Attributes:
        variable: of the code.
        array: whose elements it reads.
        dtype: of them.
        is_stored: whether it reads them from memory.
        first: place in the array of the first one that each task reads, shape [tasks].
        strides: per loop.
        turn: from which of its edges the operand comes in each iteration of a read.
    """

    variable: str
    array: str
    dtype: str
    is_stored: bool
    first: tuple[int, ...]
    strides: tuple[int, ...]
    turn: tuple[int, ...]

    @property
    def is_in_turn(self) -> bool:
        """Whether the iterations of a read take from its edges one after another."""
        return self.turn == tuple(range(len(self.turn)))


class Computation(Struct, frozen=True):
    """What the tasks of a family compute.

    Attributes:
        text: the nest, for people.
        loops: names and extents of each task's loops, outer to inner.
        start: of each loop that the code names: where each task begins, shape [tasks].
        operands: in the order of the edges.
        code: expression of the operands and loops.
        array: that is written.
        dtype: of its elements.
        first: place in it of the first element of each task, shape [tasks].
        strides: per loop.
        reduction: how what is written to one element is combined.
        kept: elements that are begun before the first one is complete; 1 if they are completed one after another.
        stores: which of the outputs write the array in memory.
    """

    text: str
    loops: tuple[tuple[str, int], ...]
    start: Mapping[str, tuple[int, ...]]
    operands: tuple[Operand, ...]
    code: str
    array: str
    dtype: str
    first: tuple[int, ...]
    strides: tuple[int, ...]
    reduction: Reduction | None
    kept: int
    stores: tuple[bool, ...]

    @property
    def stored(self) -> tuple[tuple[int, Operand], ...]:
        """Operands that come from memory, with their numbers."""
        return tuple((at, operand) for at, operand in enumerate(self.operands) if operand.is_stored)

    @property
    def combined(self) -> tuple[int, ...]:
        """Numbers of the loops whose iterations are combined in one element."""
        return tuple(place for place, stride in enumerate(self.strides) if not stride)

    @property
    def per_read(self) -> int:
        """Iterations of a read: one on each edge of an operand."""
        return max((len(operand.turn) for operand in self.operands), default=1)

    @property
    def per_element(self) -> int:
        """Iterations of an element that is written."""
        return prod(self.loops[place][1] for place in self.combined)

    @property
    def at_once(self) -> int:
        """Elements at most that are complete after one read."""
        return -(-self.per_read // self.per_element)

    @property
    def unbuilt(self) -> str | None:
        """The first operation that is no circuit, but for simulators alone; ``None`` if there is none."""
        if "float64" in {self.dtype, *(operand.dtype for operand in self.operands)}:
            return "float64"
        return self.statements()[0].unbuilt

    def statements(self) -> tuple[Statements, str]:
        """Return the statements of an iteration, and the variable that they set.

        Operands are called as in the code after ``x_``, loops after ``at_``.

        Raises:
            UserError: there is no unit for an operation.
        """
        known = {operand.variable: (f"x_{operand.variable}", operand.dtype) for operand in self.operands}
        found = Statements(known | {name: (f"at_{name}", "int64") for name in self.start})
        return found, found.computed(self.code, self.dtype)


class StoredArray(Struct, frozen=True):
    """An array in memory: its name, the type of its elements, and how many it has."""

    name: str
    dtype: str
    elements: int


class Datapath(Struct, frozen=True):
    """What the families of a circuit compute, in their order, and the arrays in memory.

    Attributes:
        computations: one per family.
        arrays: in memory.
        spilled: edges between tasks that go through memory: writing port, reading port, and elements.
    """

    computations: tuple[Computation, ...]
    arrays: tuple[StoredArray, ...]
    spilled: tuple[tuple[int, int, int], ...]


def datapath_of(program: NestProgram, extraction: ExtractionOptions, dag: CanonicalDag, circuit: Circuit) -> Datapath:
    """Return what the tasks of a circuit compute.

    Args:
        program: the model as nests.
        extraction: how the DAG was made of them.
        dag: that the circuit is of.
        circuit: the hardware.

    Raises:
        UserError: the DAG is another one, or no circuit of a task's values can be made; the task is named.
    """
    if extract_graph(program.graph, extraction, parameters=tuple(program.parameters)) != dag:
        raise refused("the DAG", "one that passes, shares of chips or words of several elements change", "the model's")
    return _Datapaths(program, flow_of(program.graph, extraction), dag, circuit).found()


def refused(where: str, found: str, against: str) -> UserError:
    """Return the error of a model or a task of whose values there is no circuit."""
    hint = "--emit rtl writes circuits without values"
    return UserError(f"--emit rtl-values: {where}: found {found} against {against} ({hint})")


class _Datapaths:
    def __init__(self, program: NestProgram, flow: Flow, dag: CanonicalDag, circuit: Circuit) -> None:
        self._flow, self._dag, self._circuit = flow, dag, circuit
        self._number = {family.scope.name: number for number, family in enumerate(flow.families)}
        self._nests = {nest.name: nest for nest in program.nests}
        shown = {step.tensor.name: step.source for step in program.steps if isinstance(step, View)}
        self._dtypes = {name: program.dtypes[root_of(name, shown)] for name in program.dtypes}
        self._border = [root_of(port.array, shown) for port in (*program.library.inputs, *program.library.outputs)]

    def found(self) -> Datapath:
        circuit, flow, dag = self._circuit, self._flow, self._dag
        computations = tuple(map(self._computation, circuit.families))
        touched = [operand.array for one in computations for operand in one.operands if operand.is_stored]
        touched += [one.array for one in computations if any(one.stores)]
        arrays = [flow.uses[name].array for name in dict.fromkeys((*touched, *self._border)) if name in flow.uses]
        push_of = {edge: port for port, edge in enumerate(circuit.push_edges)}
        streamed = {fifo.pull for fifo in circuit.fifos}
        spilled = [
            (push_of[edge], port, int(dag.edge_volume[edge]))
            for port, edge in enumerate(circuit.pull_edges)
            if edge in push_of and port not in streamed
        ]
        stored = tuple(StoredArray(array.name, self._dtypes[array.name], array.elements) for array in arrays)
        return Datapath(computations, stored, tuple(spilled))

    def _computation(self, family: Family) -> Computation:
        nest, number = self._nests[family.scope], self._number[family.scope]
        tasks, task = self._flow.families[number], f"task {family.scope!r}"
        if nest.scatter is not None or nest.tables:
            raise refused(task, "elements at places that depend on data", "places that loops say")
        if nest.after_write:
            raise refused(task, f"writes to {nest.write.tensor.name!r}, as an earlier one", "the only writer")
        for tensor in nest.tensors():
            if tensor.dtype not in WORD_BITS or tensor.dtype != self._dtypes[tensor.name]:
                raise refused(task, f"{tensor.name!r} as {tensor.dtype}", f"own types: {', '.join(WORD_BITS)}")
        nodes = self._circuit.nodes[family.first : family.first + family.count]
        places, sizes = self._places(tasks, nodes)
        loops = tuple(zip(nest.extents or {"once": 1}, sizes, strict=True))
        write = tasks.scope.writes[0]
        kept = self._kept(task, tasks, nest, write, sizes)
        operands = self._operands(family, tasks, nest, places, sizes)
        edges = self._circuit.push_edges[family.first_push :: family.count][: family.outputs]
        stores = tuple(bool(self._dag.is_buffer[self._dag.edge_target[edge]]) for edge in edges)
        named = words_of(nest.code)
        starts = {name: tuple(row[at] for row in places) for at, (name, _) in enumerate(loops) if name in named}
        result = nest.write.tensor
        found = Computation(
            str(nest), loops, starts, operands, nest.code, write.array, result.dtype,
            _firsts(write, places), write.strides, nest.accumulate, kept, stores,
        )  # fmt: skip
        try:
            found.statements()
        except UserError as error:
            raise refused(task, str(error), "what circuits have units for") from error
        iterations = prod(sizes)
        if found.per_read > 1 and kept > 1:
            raise refused(task, f"{kept} elements begun before one is complete", "memory for what several tasks write")
        if family.reads * found.per_read != iterations or (
            family.outputs and family.writes * found.per_element != iterations
        ):
            counts = f"{family.reads} reads and {family.writes} writes in {iterations} iterations"
            raise refused(task, counts, "as many in each")
        return found

    def _places(self, tasks: TaskFamily, nodes: Sequence[int]) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
        """Return where in its scope's loops each task begins, shape [tasks][loops], and the extents of each task."""
        members = np.maximum(self._dag.node_member[list(nodes)], 0)
        at = np.stack(np.unravel_index(members, [cut.tasks for cut in tasks.cuts]), axis=1).tolist()
        places = [tuple(cut.size * place for cut, place in zip(tasks.cuts, row, strict=True)) for row in at]
        ends = zip(tasks.cuts, at[0], strict=True)
        sizes = tuple(cut.last if place == cut.tasks - 1 else cut.size for cut, place in ends)
        return places, sizes

    def _kept(self, task: str, tasks: TaskFamily, nest: Nest, write: Access, sizes: tuple[int, ...]) -> int:
        """Return how many elements a task has begun before it completes the first one."""
        if not write.over(sizes).without_repeats.is_injective:
            raise refused(task, f"elements of {nest.write.tensor.name!r} that several iterations write", "one of each")
        if any(cut.tasks > 1 and not stride for cut, stride in zip(tasks.cuts, write.strides, strict=True)):
            raise refused(task, f"elements of {nest.write.tensor.name!r} to which several tasks add", "one")
        loops = [(size, stride) for size, stride in zip(sizes, write.strides, strict=True) if size > 1]
        still = next((at for at, (_, stride) in enumerate(loops) if not stride), len(loops))
        return prod(size for size, stride in loops[still:] if stride)

    def _operands(
        self, family: Family, tasks: TaskFamily, nest: Nest, places: list[tuple[int, ...]], sizes: tuple[int, ...]
    ) -> tuple[Operand, ...]:
        reads, variables = tasks.scope.reads, sorted(nest.reads)
        edges = self._circuit.pull_edges[family.first_pull :: family.count][: family.inputs]
        width = family.inputs // max(len(reads), 1)
        found = []
        for at, (access, variable) in enumerate(zip(reads, variables, strict=True)):
            is_stored = bool(self._dag.is_buffer[self._dag.edge_source[edges[at * width]]])
            turn = self._turn(access, sizes, width) if width > 1 else (0,)
            dtype = nest.reads[variable].tensor.dtype
            first = _firsts(access, places)
            found.append(Operand(variable, access.array, dtype, is_stored, first, access.strides, turn))
        return tuple(found)

    def _turn(self, access: Access, sizes: tuple[int, ...], width: int) -> tuple[int, ...]:
        """Return which member of the family of writers each of so many iterations takes its element from."""
        writer, write = self._flow.uses[access.array].writers[0]
        members = Traversal(0, self._flow.families[writer].over_members(write))
        member_at = {offset: member for member, offset in enumerate(_offsets(members, members.accesses))}
        return tuple(member_at[offset] for offset in _offsets(Traversal(0, access.over(sizes).loops), width))


def _firsts(access: Access, places: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(
        access.base + sum(stride * start for stride, start in zip(access.strides, row, strict=True)) for row in places
    )


def _offsets(traversal: Traversal, count: int) -> list[int]:
    """Return the first offsets of a traversal."""
    steps = ([stride * index for index in range(extent)] for extent, stride in traversal.loops)
    return [sum(moves) for moves in islice(product(*steps), count)]

"""Extraction: the canonical DAG of a lowered SDFG."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, UNORDERED, CanonicalDag, Int32, Int64
from dfcompile.canonical_dag.extraction.families import MemberVolumes, divide, split
from dfcompile.canonical_dag.extraction.flow import ArrayUse, Flow, Stream, find_flow
from dfcompile.canonical_dag.extraction.granularity import DECLARED, Granularity
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph
from dfcompile.canonical_dag.extraction.traversal import Traversal, order_text
from dfcompile.canonical_dag.kernel import KernelTensor, TensorRole
from dfcompile.errors import UserError
from dfcompile.options import Volumes

if TYPE_CHECKING:
    import dace


class ExtractionOptions(Struct, frozen=True):
    """How a lowered SDFG becomes a canonical DAG."""

    volumes: Volumes = Volumes.EXACT
    granularity: Granularity = DECLARED


DEFAULT_OPTIONS = ExtractionOptions()


def extract(
    sdfg: "dace.SDFG", options: ExtractionOptions = DEFAULT_OPTIONS, *, parameters: Collection[str] = ()
) -> CanonicalDag:
    """Return the canonical DAG of a lowered SDFG [dematteis23, section 3].

    A top-level map scope is a task, or one task per iteration of its spatial parameters. A task reads one element of
    every operand per iteration, so its input edges are equal; its output volume is the number of distinct elements it
    writes. An array between two scopes is an edge where both keep one order (proved), otherwise a buffer.

    Args:
        sdfg: of one state with only map scopes of one tasklet; not changed.
        options: volume convention and granularity.
        parameters: names of the arrays that hold constants of the model.

    Raises:
        UserError: the SDFG is not of that form or not canonical; the message names the scope or the array.
    """
    from dfcompile.canonical_dag.extraction.sdfg_reader import read_lowered  # DaCe takes long to import

    return extract_graph(read_lowered(sdfg), options, parameters=parameters)


def extract_graph(
    graph: LoweredGraph, options: ExtractionOptions = DEFAULT_OPTIONS, *, parameters: Collection[str] = ()
) -> CanonicalDag:
    """Return the canonical DAG of map scopes and arrays; see `extract`.

    Raises:
        UserError: what they are is not canonical; the message names the scope or the array.
    """
    return _Assembly(graph.name, flow_of(graph, options), frozenset(parameters)).assemble()


def flow_of(graph: LoweredGraph, options: ExtractionOptions = DEFAULT_OPTIONS) -> Flow:
    """Return the families of tasks of map scopes, and how data flows between them.

    Raises:
        UserError: what they are is not canonical, or there are too many tasks; the message names the scope.
    """
    whole_arrays = options.volumes.are_whole_arrays
    flow = find_flow(divide(graph.scopes, options.granularity), graph.arrays, whole_arrays=whole_arrays)
    if options.granularity.split is None:
        return flow if whole_arrays else flow.in_slices(options.granularity)
    pieces = options.granularity.split
    return find_flow(split(flow.families, flow.big_tasks(pieces), pieces), graph.arrays, whole_arrays=whole_arrays)


class _Assembly:
    """Turns a flow into nodes and edges: producers first, a buffer right after its last writer."""

    def __init__(self, name: str, flow: Flow, parameters: frozenset[str]) -> None:
        self._flow = flow
        self._parameters = parameters
        self._builder = DagBuilder(name)
        self._tasks: dict[int, Int32] = {}  # family -> its nodes
        self._buffers: dict[str, Int32] = {}  # array -> its nodes, one for each slice
        self._task_scopes = frozenset(family.scope.name for family in flow.families)

    def assemble(self) -> CanonicalDag:
        self._add_nodes()
        for number in self._flow.order:
            self._add_edges(number)
        for kernel in filter(None, (self._flow.families[number].scope.kernel for number in self._flow.order)):
            for name in (*kernel.inputs, *kernel.outputs):
                if name not in self._flow.uses:
                    raise UserError(f"kernel {kernel.name!r}: no array {name!r} against one per tensor")
                self._add_tensor(self._flow.uses[name])
        for name in self._buffers:
            if not self._flow.uses[name].writers:  # a table that is looked up is an operand of no kernel
                self._add_tensor(self._flow.uses[name])
        return self._builder.finish()

    def _add_nodes(self) -> None:
        families = self._flow.families
        last_writer = {access.array: number for number in self._flow.order for access in families[number].scope.writes}
        for number in self._flow.order:
            family = families[number]
            for access in family.scope.reads:
                if access.array not in last_writer:
                    self._add_buffer(self._flow.uses[access.array])
            kernel = NO_KERNEL if family.scope.kernel is None else self._builder.add_kernel(family.scope.kernel)
            scope = self._builder.add_scope(family.scope.name, kernel, family.scope.origin)
            nodes = self._builder.add_tasks(scope, family.members, NO_MEMBER if family.is_single else 0)
            self._tasks[number] = np.array(nodes, dtype=np.int32)
            for access in family.scope.writes:
                if last_writer[access.array] == number:
                    self._add_buffer(self._flow.uses[access.array])

    def _add_buffer(self, use: ArrayUse) -> None:
        name = use.array.name
        if use.is_buffer and name not in self._buffers:
            # An array may be named like a scope of tasks, which has the older right to the name.
            scope = f"{name}.buffer" if name in self._task_scopes else name
            slices, number = self._flow.slices.get(name), self._builder.add_scope(scope, origin=name)
            ends = (1, NO_MEMBER) if slices is None else (slices.count, 0)
            self._buffers[name] = np.array(self._builder.add_buffers(number, *ends), dtype=np.int32)

    # -- edges

    def _add_edges(self, number: int) -> None:
        """Add the input edges of a family in operand order, then its edges to buffers."""
        family = self._flow.families[number]
        tasks = self._tasks[number]
        for access in family.scope.reads:
            use = self._flow.uses[access.array]
            stream = use.stream_of(number, access)
            if stream is not None:
                self._add_stream(stream, use.array)
                continue
            buffers = self._touched(number, access)
            text = _order_text(None if access.is_indirect else family.member(access), use.array)
            volumes, distinct = (
                _numbers(family.iterations()),
                np.minimum(family.distinct_in(access), use.array.elements),
            )
            taken = self._taken(number, access)
            width, first = use.array.element_bytes, family.places(access)
            self._builder.add_edges(buffers, tasks, volumes, width, text, distinct, first, taken)
        for access in family.scope.writes:
            use = self._flow.uses[access.array]
            if use.is_buffer:
                member = family.member(access)
                buffers = self._touched(number, access)
                order = None if access.is_indirect else member.completion or member.without_repeats
                text, volumes = _order_text(order, use.array), _numbers(family.written(access))
                self._builder.add_edges(tasks, buffers, volumes, use.array.element_bytes, text)

    def _touched(self, number: int, access: Access) -> Int32:
        """Return the buffer that each task of a family touches, shape [tasks]."""
        buffers, slices = self._buffers[access.array], self._flow.slices.get(access.array)
        if slices is None:
            return np.repeat(buffers, len(self._tasks[number]))
        return buffers[slices.touched(self._flow.families[number], access)]

    def _taken(self, number: int, access: Access) -> Int64 | int:
        """Return how many different elements are taken of what each task of a family reads, at least."""
        family, array = self._flow.families[number], self._flow.uses[access.array].array
        taken = min(family.taken(access), array.elements)
        is_apart = access.array in self._flow.slices and taken > 1  # of a slice what one task takes
        return family.distinct_in(access) if is_apart else taken

    def _add_stream(self, stream: Stream, array: Array) -> None:
        producers, consumers = self._tasks[stream.producer], self._tasks[stream.consumer]
        count = max(len(producers), len(consumers))
        producer, consumer = self._flow.families[stream.producer], self._flow.families[stream.consumer]
        # Of a family that one task reads in turn, each edge carries the member's own order.
        order = producer.member(stream.write).completion if len(producers) > 1 else consumer.member(stream.read)
        assert order is not None
        sources, targets = (each if len(each) == count else np.resize(each, count) for each in (producers, consumers))
        volumes = _numbers(self._flow.stream_volumes(stream))
        self._builder.add_edges(sources, targets, volumes, array.element_bytes, _order_text(order, array))

    def _add_tensor(self, use: ArrayUse) -> None:
        array = use.array
        self._builder.add_tensor(KernelTensor(array.name, array.elements, array.element_bytes, self._role(use)))

    def _role(self, use: ArrayUse) -> TensorRole:
        if use.array.is_transient:
            return TensorRole.INTERMEDIATE
        if use.writers:
            return TensorRole.OUTPUT
        return TensorRole.PARAMETER if use.array.name in self._parameters else TensorRole.INPUT


def _numbers(volumes: MemberVolumes) -> Int64 | int:
    """Return the number of each member, or the one of all."""
    return volumes.whole if volumes.is_even else volumes.column()


def _order_text(order: Traversal | None, array: Array) -> str:
    return UNORDERED if order is None else order_text(order, array.shape, array.strides)

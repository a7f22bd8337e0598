"""The canonical DAG: tasks, buffers and exact volumes, as read-only array columns."""

from dataclasses import dataclass, fields
from enum import IntEnum, unique
from functools import cached_property
from itertools import pairwise
from typing import TypeVar, assert_never

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.kernel import Kernel, KernelTensor


@unique
class NodeKind(IntEnum):
    """What a node does to its stream; a computational node has one rate ``R = O / I`` [dematteis23, section 3].

    ``I`` is the volume of *every* input edge in elements, ``O`` the volume of *every* output edge.
    """

    ELEMENTWISE = 0  # R = 1
    DOWNSAMPLER = 1  # R < 1: a reduction
    UPSAMPLER = 2  # R > 1: a replication or a gather
    SOURCE = 3  # a task without input edges, such as a fill; work O
    SINK = 4  # a task without output edges; work I
    BUFFER = 5  # memory: stores its inputs whole, then emits; no work, no processing element
    PSEUDO_SOURCE = 6  # marks the start of the graph; no work, no processing element
    PSEUDO_SINK = 7  # marks the end of the graph; no work, no processing element

    @property
    def is_computational(self) -> bool:
        """Whether a node of this kind occupies a processing element."""
        match self:
            case NodeKind.ELEMENTWISE | NodeKind.DOWNSAMPLER | NodeKind.UPSAMPLER | NodeKind.SOURCE | NodeKind.SINK:
                return True
            case NodeKind.BUFFER | NodeKind.PSEUDO_SOURCE | NodeKind.PSEUDO_SINK:
                return False
        assert_never(self)


Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

Column = TypeVar("Column", bound=npt.NDArray[np.generic])

NO_KERNEL = -1
NO_MEMBER = -1
NO_PLACE = -1  # of what travels on an edge: not known
UNORDERED = "any"  # text of an access order that is not known


class Scope(Struct, frozen=True):
    """A family of nodes that come from one place: one map scope, or one buffer.

    A scope is a single node, or one node per iteration of its spatial parameters.
    """

    name: str  # unique in the DAG
    kernel: int  # index into CanonicalDag.kernels, or NO_KERNEL
    origin: str  # the user's operator; for a buffer the array's name


@dataclass(frozen=True, eq=False)
class CanonicalDag:
    """A DAG of computational nodes and buffers with integer volumes [dematteis23, section 3].

    Nodes and edges are numbered from 0 in a fixed order; every column is read-only. All volumes are in
    elements. Use `DagBuilder` to make one: its ``finish`` verifies.

    Attributes:
        name: of the graph.
        scopes: families of nodes.
        kernels: the canonical library nodes that the tasks come from.
        tensors: the arrays that the kernels exchange.
        orders: texts of the access orders that ``edge_order`` refers to.
        kind: ``NodeKind`` of each node, shape [nodes].
        volume_in: I, elements on *every* input edge; 0 without input edges; of a buffer the sum, shape [nodes].
        volume_out: O, elements on *every* output edge; 0 without; of a buffer the largest, shape [nodes].
        node_scope: index into ``scopes``, shape [nodes].
        node_member: number of the node in its scope, ``NO_MEMBER`` if the scope is a single node, shape [nodes].
        edge_source: producing node, shape [edges].
        edge_target: consuming node, shape [edges].
        edge_volume: elements that travel on the edge, shape [edges].
        edge_distinct: how many of them are different elements, from 1 to the volume, shape [edges]: what must be held
            so that none is fetched twice.
        edge_element_bytes: bytes per element, shape [edges].
        edge_order: index into ``orders`` of the order in which the elements travel, shape [edges]. On an
            edge between computational nodes producer and consumer agree on it: that was proved.
        edge_first: place in its array of the first element that travels on each edge, `NO_PLACE` where it is not known,
            shape [edges]. Edges of one buffer, order, volume and place carry the same elements. Files do not have it.
        edge_taken: how many different elements all tasks of its scope take by the operand of each edge, at least, shape
            [edges]; of a graph from a file what the edge itself carries.
    """

    name: str
    scopes: tuple[Scope, ...]
    kernels: tuple[Kernel, ...]
    tensors: tuple[KernelTensor, ...]
    orders: tuple[str, ...]
    kind: Int8
    volume_in: Int64
    volume_out: Int64
    node_scope: Int32
    node_member: Int64
    edge_source: Int32
    edge_target: Int32
    edge_volume: Int64
    edge_distinct: Int64
    edge_element_bytes: Int8
    edge_order: Int32
    edge_first: Int64
    edge_taken: Int64

    @property
    def nodes_count(self) -> int:
        """Number of nodes, buffers and pseudo nodes included."""
        return len(self.kind)

    @property
    def edges_count(self) -> int:
        """Number of edges."""
        return len(self.edge_source)

    @cached_property
    def is_computational(self) -> Bool:
        """Whether each node occupies a processing element, shape [nodes]."""
        return frozen(self.kind < NodeKind.BUFFER)

    @cached_property
    def is_buffer(self) -> Bool:
        """Whether each node is a buffer, shape [nodes]."""
        return frozen(self.kind == NodeKind.BUFFER)

    @cached_property
    def tasks_count(self) -> int:
        """Number of computational nodes."""
        return int(np.count_nonzero(self.is_computational))

    @cached_property
    def between_tasks(self) -> Bool:
        """Whether both ends of each edge are computational nodes, shape [edges]."""
        return frozen(self.is_computational[self.edge_source] & self.is_computational[self.edge_target])

    @cached_property
    def is_ordered(self) -> Bool:
        """Whether it is known in which order the elements of each edge travel, shape [edges]."""
        unknown = self.orders.index(UNORDERED) if UNORDERED in self.orders else -1
        return frozen(self.edge_order != unknown)

    @cached_property
    def scopes_and_outside(self) -> tuple[Scope, ...]:
        """The scopes, and one for what stands for nodes outside of a part, under a name that is free."""
        taken = {scope.name for scope in self.scopes}
        name = "outside"
        while name in taken:
            name += "_"
        return (*self.scopes, Scope(name, NO_KERNEL, "outside"))

    @cached_property
    def work(self) -> Int64:
        """``W = max(I, O)`` in cycles on one processing element, 0 for buffers and pseudo nodes, shape [nodes]."""
        return frozen(np.where(self.is_computational, np.maximum(self.volume_in, self.volume_out), 0).astype(np.int64))

    @cached_property
    def out_edges(self) -> Int32:
        """Edge numbers sorted by source, then by number, shape [edges]; see ``out_start``."""
        return frozen(np.argsort(self.edge_source, kind="stable").astype(np.int32))

    @cached_property
    def out_start(self) -> Int64:
        """``out_edges[out_start[v]:out_start[v + 1]]`` are the output edges of v, shape [nodes + 1]."""
        return frozen(row_starts(self.edge_source, self.nodes_count))

    @cached_property
    def in_edges(self) -> Int32:
        """Edge numbers sorted by target, then by number, shape [edges]; see ``in_start``."""
        return frozen(np.argsort(self.edge_target, kind="stable").astype(np.int32))

    @cached_property
    def in_start(self) -> Int64:
        """``in_edges[in_start[v]:in_start[v + 1]]`` are the input edges of v, shape [nodes + 1]."""
        return frozen(row_starts(self.edge_target, self.nodes_count))

    def producers(self) -> list[list[int]]:
        """Return the nodes that each node reads from, one per input edge."""
        sources = self.edge_source[self.in_edges].tolist()
        return [sources[begin:end] for begin, end in pairwise(self.in_start.tolist())]

    def __eq__(self, other: object) -> bool:
        """Whether both have the same nodes, edges and tables in the same order: all that files have."""
        if not isinstance(other, CanonicalDag):
            return NotImplemented
        names = [field.name for field in fields(self) if field.name not in {"edge_first", "edge_taken"}]
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two for one, two in pairs)

    def __hash__(self) -> int:
        return hash((self.name, self.nodes_count, self.edges_count))

    def node_name(self, node: int) -> str:
        """Return the unique name of a node, such as ``conv1.mv[12]``."""
        scope = self.scopes[self.node_scope[node]].name
        member = int(self.node_member[node])
        return scope if member == NO_MEMBER else f"{scope}[{member}]"


_NUMBERS = {Int8: np.int8, Int32: np.int32, Int64: np.int64}
COLUMNS = {field.name: _NUMBERS[field.type] for field in fields(CanonicalDag) if field.type in _NUMBERS}
EDGE_COLUMNS = tuple(name for name in COLUMNS if name.startswith("edge"))


def row_starts(rows: Int32 | Int64, count: int) -> Int64:
    """Return where each row starts among entries that are sorted by row, shape [count + 1]."""
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


def frozen(column: Column) -> Column:
    """Return a column as one that is read-only from now on."""
    column.setflags(write=False)
    return column


def node_volumes(kind: Int8, edge_source: Int32, edge_target: Int32, volume: Int64) -> tuple[Int64, Int64]:
    """Return I and O of each node from its edges: the largest edge, of a buffer's inputs the sum, shape [nodes]."""
    largest_in = np.zeros(len(kind), dtype=np.int64)
    np.maximum.at(largest_in, edge_target, volume)
    stored = np.zeros(len(kind), dtype=np.int64)
    np.add.at(stored, edge_target, volume)
    volume_out = np.zeros(len(kind), dtype=np.int64)
    np.maximum.at(volume_out, edge_source, volume)
    return np.where(kind == NodeKind.BUFFER, stored, largest_in), volume_out


def kinds_of_tasks(volume_in: Int64, volume_out: Int64) -> Int8:
    """Return the kind that each pair of volumes makes of a computational node."""
    conditions = [volume_in == 0, volume_out == 0, volume_in == volume_out, volume_in > volume_out]
    kinds = [NodeKind.SOURCE, NodeKind.SINK, NodeKind.ELEMENTWISE, NodeKind.DOWNSAMPLER]
    return np.select(conditions, [int(kind) for kind in kinds], int(NodeKind.UPSAMPLER)).astype(np.int8)

"""Builds canonical DAGs: the one mutable class of this stage."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import (
    COLUMNS,
    EDGE_COLUMNS,
    NO_KERNEL,
    NO_MEMBER,
    NO_PLACE,
    UNORDERED,
    CanonicalDag,
    Int64,
    NodeKind,
    Scope,
    frozen,
    kinds_of_tasks,
    node_volumes,
)
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor
from dfcompile.canonical_dag.verifier import verify
from dfcompile.errors import DfcompileError, InternalError, VerificationError

Numbers: TypeAlias = Sequence[int] | npt.NDArray[np.integer]
Number: TypeAlias = Numbers | int  # of each row, or the same of all

_NODE_COLUMNS = ("kind", "node_scope", "node_member")
_TASK = -1  # kind of a computational node, until its volumes are known


class DagBuilder:
    """Collects nodes and edges; `finish` derives kinds and volumes, verifies and freezes.

    Volumes of a node are not given but derived from its edges, so they cannot contradict them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._scopes: dict[str, tuple[int, Scope]] = {}
        self._kernels: dict[str, tuple[int, Kernel]] = {}
        self._tensors: dict[str, KernelTensor] = {}
        self._orders: dict[str, int] = {}
        names = (*_NODE_COLUMNS, *EDGE_COLUMNS)
        self._columns: dict[str, array[int]] = {name: array(np.dtype(COLUMNS[name]).char) for name in names}
        self._edge_blocks: list[tuple[int, Sequence[Number]]] = []  # which come after those in columns
        self._edges_count = 0

    @classmethod
    def of(cls, dag: CanonicalDag) -> DagBuilder:
        """Return a builder that holds all of a DAG, for passes that change some of it; numbers stay as they are."""
        builder = cls(dag.name)
        builder._scopes = {scope.name: (number, scope) for number, scope in enumerate(dag.scopes)}
        builder._kernels = {kernel.name: (number, kernel) for number, kernel in enumerate(dag.kernels)}
        builder._tensors = {tensor.name: tensor for tensor in dag.tensors}
        builder._orders = {order: number for number, order in enumerate(dag.orders)}
        builder.add_node_columns(dag.kind, dag.node_scope, dag.node_member)
        builder._add_edge_block(dag.edges_count, [getattr(dag, name) for name in EDGE_COLUMNS])
        return builder

    def add_kernel(self, kernel: Kernel) -> int:
        """Register a kernel and return its index; adding an equal kernel again returns the same index."""
        number, known = self._kernels.setdefault(kernel.name, (len(self._kernels), kernel))
        if known != kernel:
            raise InternalError(f"kernel {kernel.name!r}: added twice with different contents")
        return number

    def add_tensor(self, tensor: KernelTensor) -> None:
        """Register an array that kernels exchange."""
        self._tensors[tensor.name] = tensor

    def add_order(self, order: str) -> int:
        """Register the text of an access order and return its index; edges register theirs themselves."""
        return self._orders.setdefault(order, len(self._orders))

    @property
    def orders(self) -> tuple[str, ...]:
        """Texts of the access orders so far, by number."""
        return tuple(self._orders)

    def add_scope(self, name: str, kernel: int = NO_KERNEL, origin: str = "") -> int:
        """Register a family of nodes and return its index.

        Raises:
            InternalError: the name is taken.
        """
        if name in self._scopes:
            raise InternalError(f"scope {name!r}: added twice")
        self._scopes[name] = len(self._scopes), Scope(name, kernel, origin or name)
        return len(self._scopes) - 1

    def add_task(self, scope: int, member: int = NO_MEMBER) -> int:
        """Add a computational node and return its number; its kind follows from its volumes."""
        return self._add_node(_TASK, scope, member)

    def add_tasks(self, scope: int, count: int, first_member: int = 0) -> range:
        """Add ``count`` computational nodes of a family and return their numbers."""
        return self._add_family(_TASK, scope, count, first_member)

    def add_buffers(self, scope: int, count: int, first_member: int = 0) -> range:
        """Add a buffer for each slice of an array and return their numbers."""
        return self._add_family(int(NodeKind.BUFFER), scope, count, first_member)

    def _add_family(self, kind: int, scope: int, count: int, first_member: int) -> range:
        first = len(self._columns["kind"])
        if count == 1:
            self._add_node(kind, scope, first_member)
        else:
            members = first_member + np.arange(count, dtype=np.int64)
            self.add_node_columns(np.full(count, kind), np.full(count, scope), members)
        return range(first, first + count)

    def add_memory(self, scope: int, kind: NodeKind = NodeKind.BUFFER) -> int:
        """Add a buffer or a pseudo node and return its number."""
        if kind.is_computational:
            raise InternalError(f"kind {kind.name}: derived from volumes, not given")
        return self._add_node(int(kind), scope, NO_MEMBER)

    def add_node_columns(self, kinds: Numbers, scopes: Numbers, members: Numbers) -> None:
        """Add nodes that have all their fields in columns, shape [nodes] each; kinds of tasks do not count."""
        fixed = np.where(np.less(kinds, NodeKind.BUFFER), _TASK, kinds)
        self._extend(dict(zip(_NODE_COLUMNS, (fixed, scopes, members), strict=True)))

    def add_edge(
        self,
        source: int,
        target: int,
        volume: int,
        element_bytes: int = 4,
        order: str = UNORDERED,
        distinct: int | None = None,
    ) -> int:
        """Add an edge that carries ``volume`` elements, all different ones unless given; return its number."""
        different = volume if distinct is None else distinct
        columns = source, target, volume, different, element_bytes, self.add_order(order), NO_PLACE, different
        self._add_edge_block(1, columns)
        return self._edges_count - 1

    def add_edges(
        self,
        sources: Numbers,
        targets: Numbers,
        volumes: Number,
        element_bytes: int = 4,
        order: str = UNORDERED,
        distinct: Number | None = None,
        first: Numbers | None = None,
        taken: Number | None = None,
    ) -> None:
        """Add many edges of one element size and order at once; the sequences run in parallel, a number is of all.

        Raises:
            InternalError: the sequences differ in length.
        """
        count = len(sources)
        volumes_count = count if isinstance(volumes, int) else len(volumes)
        if len(targets) != count or volumes_count != count:
            raise InternalError(f"edges: {len(targets)} targets and {volumes_count} volumes against {count} sources")
        different = volumes if distinct is None else distinct
        columns = (
            sources, targets, volumes, different, element_bytes, self.add_order(order),
            NO_PLACE if first is None else first, different if taken is None else taken,
        )  # fmt: skip
        self._add_edge_block(count, columns)

    def add_edge_columns(
        self, sources: Int64, targets: Int64, volumes: Int64, distinct: Int64, element_bytes: Int64, orders: Int64
    ) -> None:
        """Add edges that have all their fields in columns, shape [edges] each; orders by number, see `add_order`."""
        columns = (sources, targets, volumes, distinct, element_bytes, orders, NO_PLACE, distinct)
        self._add_edge_block(len(sources), columns)

    def split_edge(self, edge: int, node: int) -> int:
        """Lead an edge to a node and from there on to where it ended; return the number of the second half.

        Args:
            edge: number of the edge, which now ends at ``node``.
            node: such as a buffer that was added to hold what the edge carries.
        """
        self._settle_edges()
        for name in EDGE_COLUMNS:
            self._columns[name].append(self._columns[name][edge])
        self._columns["edge_target"][edge] = self._columns["edge_source"][-1] = node
        self._edges_count += 1
        return self._edges_count - 1

    def finish(self, error: Callable[[str], DfcompileError] = VerificationError) -> CanonicalDag:
        """Derive volumes and kinds, verify, freeze.

        Args:
            error: what to raise; a reader of user files passes ``UserError``.

        Raises:
            VerificationError: (or ``error``) the graph is not canonical; the message names the node or the edge.
        """
        self._settle_edges()
        columns = {name: np.asarray(values, dtype=COLUMNS[name]) for name, values in self._columns.items()}  # no copies
        fixed = columns["kind"]
        edges = columns["edge_source"], columns["edge_target"], columns["edge_volume"]
        volume_in, volume_out = node_volumes(fixed, *edges)
        kind = np.where(fixed == _TASK, kinds_of_tasks(volume_in, volume_out), fixed).astype(np.int8)
        columns |= {"kind": kind, "volume_in": volume_in, "volume_out": volume_out}
        dag = CanonicalDag(
            name=self._name,
            scopes=tuple(scope for _, scope in self._scopes.values()),
            kernels=tuple(kernel for _, kernel in self._kernels.values()),
            tensors=tuple(self._tensors.values()),
            orders=tuple(self._orders),
            **{name: frozen(column) for name, column in columns.items()},
        )
        verify(dag, error)
        return dag

    def _add_node(self, kind: int, scope: int, member: int) -> int:
        for name, value in zip(_NODE_COLUMNS, (kind, scope, member), strict=True):
            self._columns[name].append(value)
        return len(self._columns["kind"]) - 1

    def _add_edge_block(self, count: int, columns: Sequence[Number]) -> None:
        self._edge_blocks.append((count, columns))
        self._edges_count += count

    def _settle_edges(self) -> None:
        """Move the edges of all blocks to the columns."""
        if not self._edge_blocks:
            return
        counts = np.array([count for count, _ in self._edge_blocks])
        ends = np.cumsum(counts).tolist()
        for place, name in enumerate(EDGE_COLUMNS):
            blocks = [block[place] for _, block in self._edge_blocks]
            if len(blocks) == 1 and not isinstance(blocks[0], int):
                self._extend({name: blocks[0]})
                continue
            of_all = [block if isinstance(block, int) else 0 for block in blocks]
            column = np.repeat(np.array(of_all, dtype=COLUMNS[name]), counts)
            for block, count, end in zip(blocks, counts.tolist(), ends, strict=True):
                if not isinstance(block, int):
                    column[end - count : end] = block
            self._extend({name: column})
        self._edge_blocks.clear()

    def _extend(self, columns: Mapping[str, Numbers]) -> None:
        for name, values in columns.items():
            column = np.ascontiguousarray(values, dtype=COLUMNS[name])
            self._columns[name].frombytes(memoryview(column).cast("B"))  # type: ignore[arg-type]  # numpy's arrays are buffers

"""Builds canonical DAGs: the one mutable class of this stage."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import (
    NO_KERNEL,
    NO_MEMBER,
    NO_PLACE,
    UNORDERED,
    CanonicalDag,
    Int64,
    NodeKind,
    Scope,
    kinds_of_tasks,
    node_volumes,
)
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor
from dfcompile.canonical_dag.verifier import verify
from dfcompile.errors import DfcompileError, InternalError, VerificationError


class DagBuilder:
    """Collects nodes and edges; `finish` derives kinds and volumes, verifies and freezes.

    Volumes of a node are not given but derived from its edges, so they cannot contradict them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._scopes: list[Scope] = []
        self._scope_index: dict[str, int] = {}
        self._kernels: list[Kernel] = []
        self._kernel_index: dict[str, int] = {}
        self._tensors: dict[str, KernelTensor] = {}
        self._orders: dict[str, int] = {}
        self._fixed_kind = array("b")  # NodeKind of buffers and pseudo nodes, TASK for computational nodes
        self._node_scope = array("i")
        self._node_member = array("q")
        self._edge_source = array("i")
        self._edge_target = array("i")
        self._edge_volume = array("q")
        self._edge_distinct = array("q")
        self._edge_bytes = array("b")
        self._edge_order = array("i")
        self._edge_first = array("q")
        self._edge_taken = array("q")

    @classmethod
    def of(cls, dag: CanonicalDag) -> DagBuilder:
        """Return a builder that holds all of a DAG, for passes that change some of it; numbers stay as they are."""
        builder = cls(dag.name)
        builder._scopes = list(dag.scopes)
        builder._scope_index = {scope.name: number for number, scope in enumerate(dag.scopes)}
        builder._kernels = list(dag.kernels)
        builder._kernel_index = {kernel.name: number for number, kernel in enumerate(dag.kernels)}
        builder._tensors = {tensor.name: tensor for tensor in dag.tensors}
        builder._orders = {order: number for number, order in enumerate(dag.orders)}
        fixed = np.where(dag.is_computational, _TASK, dag.kind).astype(np.int8)
        columns = (fixed, dag.node_scope, dag.node_member, dag.edge_source, dag.edge_target, dag.edge_volume,
                   dag.edge_distinct, dag.edge_element_bytes, dag.edge_order, dag.edge_first,
                   dag.edge_taken)  # fmt: skip
        held = (builder._fixed_kind, builder._node_scope, builder._node_member, builder._edge_source,
                builder._edge_target, builder._edge_volume, builder._edge_distinct, builder._edge_bytes,
                builder._edge_order, builder._edge_first, builder._edge_taken)  # fmt: skip
        for values, column in zip(held, columns, strict=True):
            values.frombytes(np.ascontiguousarray(column).tobytes())
        return builder

    def add_kernel(self, kernel: Kernel) -> int:
        """Register a kernel and return its index; adding an equal kernel again returns the same index."""
        known = self._kernel_index.setdefault(kernel.name, len(self._kernels))
        if known == len(self._kernels):
            self._kernels.append(kernel)
        elif self._kernels[known] != kernel:
            raise InternalError(f"kernel {kernel.name!r}: added twice with different contents")
        return known

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
        if name in self._scope_index:
            raise InternalError(f"scope {name!r}: added twice")
        self._scope_index[name] = len(self._scopes)
        self._scopes.append(Scope(name, kernel, origin or name))
        return self._scope_index[name]

    def add_task(self, scope: int, member: int = NO_MEMBER) -> int:
        """Add a computational node and return its number; its kind follows from its volumes."""
        return self._add_node(_TASK, scope, member)

    def add_tasks(self, scope: int, count: int, first_member: int = 0) -> range:
        """Add ``count`` computational nodes of a family and return their numbers."""
        first = len(self._node_scope)
        if count == 1:
            return range(self._add_node(_TASK, scope, first_member), first + 1)
        self._fixed_kind.frombytes(np.full(count, _TASK, dtype=np.int8).tobytes())
        self._node_scope.frombytes(np.full(count, scope, dtype=np.int32).tobytes())
        self._node_member.frombytes(np.arange(first_member, first_member + count, dtype=np.int64).tobytes())
        return range(first, first + count)

    def add_memory(self, scope: int, kind: NodeKind = NodeKind.BUFFER) -> int:
        """Add a buffer or a pseudo node and return its number."""
        if kind.is_computational:
            raise InternalError(f"kind {kind.name}: derived from volumes, not given")
        return self._add_node(int(kind), scope, NO_MEMBER)

    def add_node_columns(self, kinds: Int64, scopes: Int64, members: Int64) -> None:
        """Add nodes that have all their fields in columns, shape [nodes] each; kinds of tasks do not count."""
        fixed = np.where(kinds < NodeKind.BUFFER, _TASK, kinds)
        held = (self._fixed_kind, self._node_scope, self._node_member)
        for values, column in zip(held, (fixed, scopes, members), strict=True):
            values.frombytes(column.astype(f"i{values.itemsize}").tobytes())

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
        self._edge_source.append(source)
        self._edge_target.append(target)
        self._edge_volume.append(volume)
        self._edge_distinct.append(volume if distinct is None else distinct)
        self._edge_bytes.append(element_bytes)
        self._edge_order.append(self.add_order(order))
        self._edge_first.append(NO_PLACE)
        self._edge_taken.append(self._edge_distinct[-1])
        return len(self._edge_source) - 1

    def add_edges(
        self,
        sources: Sequence[int] | npt.NDArray[np.integer],
        targets: Sequence[int] | npt.NDArray[np.integer],
        volumes: Sequence[int] | npt.NDArray[np.integer],
        element_bytes: int = 4,
        order: str = UNORDERED,
        distinct: Sequence[int] | npt.NDArray[np.integer] | None = None,
        first: Sequence[int] | npt.NDArray[np.integer] | None = None,
        taken: int | None = None,
    ) -> None:
        """Add many edges of one element size and order at once; the sequences run in parallel.

        Raises:
            InternalError: the sequences differ in length.
        """
        count = len(sources)
        if len(targets) != count or len(volumes) != count:
            raise InternalError(f"edges: {len(targets)} targets and {len(volumes)} volumes against {count} sources")
        self._edge_source.frombytes(np.asarray(sources, dtype=np.int32).tobytes())
        self._edge_target.frombytes(np.asarray(targets, dtype=np.int32).tobytes())
        self._edge_volume.frombytes(np.asarray(volumes, dtype=np.int64).tobytes())
        self._edge_distinct.frombytes(np.asarray(volumes if distinct is None else distinct, dtype=np.int64).tobytes())
        self._edge_bytes.frombytes(np.full(count, element_bytes, dtype=np.int8).tobytes())
        self._edge_order.frombytes(np.full(count, self.add_order(order), dtype=np.int32).tobytes())
        places = np.full(count, NO_PLACE) if first is None else first
        self._edge_first.frombytes(np.asarray(places, dtype=np.int64).tobytes())
        own = volumes if distinct is None else distinct
        everything = own if taken is None else np.full(count, taken)
        self._edge_taken.frombytes(np.asarray(everything, dtype=np.int64).tobytes())

    def add_edge_columns(
        self, sources: Int64, targets: Int64, volumes: Int64, distinct: Int64, element_bytes: Int64, orders: Int64
    ) -> None:
        """Add edges that have all their fields in columns, shape [edges] each; orders by number, see `add_order`."""
        columns = (sources, targets, volumes, distinct, element_bytes, orders)
        held = (self._edge_source, self._edge_target, self._edge_volume, self._edge_distinct, self._edge_bytes,
                self._edge_order)  # fmt: skip
        for values, column in zip(held, columns, strict=True):
            values.frombytes(column.astype(f"i{values.itemsize}").tobytes())
        self._edge_first.frombytes(np.full(len(sources), NO_PLACE, dtype=np.int64).tobytes())
        self._edge_taken.frombytes(distinct.astype(np.int64).tobytes())

    def split_edge(self, edge: int, node: int) -> int:
        """Lead an edge to a node and from there on to where it ended; return the number of the second half.

        Args:
            edge: number of the edge, which now ends at ``node``.
            node: such as a buffer that was added to hold what the edge carries.
        """
        target = self._edge_target[edge]
        self._edge_target[edge] = node
        self._edge_source.append(node)
        self._edge_target.append(target)
        held = (self._edge_volume, self._edge_distinct, self._edge_bytes, self._edge_order, self._edge_first,
                self._edge_taken)  # fmt: skip
        for column in held:
            column.append(column[edge])
        return len(self._edge_source) - 1

    def finish(self, error: Callable[[str], DfcompileError] = VerificationError) -> CanonicalDag:
        """Derive volumes and kinds, verify, freeze.

        Args:
            error: what to raise; a reader of user files passes ``UserError``.

        Raises:
            VerificationError: (or ``error``) the graph is not canonical; the message names the node or the edge.
        """
        fixed = np.frombuffer(self._fixed_kind, dtype=np.int8) if self._fixed_kind else np.zeros(0, np.int8)
        source = _column(self._edge_source, np.int32)
        target = _column(self._edge_target, np.int32)
        volume = _column(self._edge_volume, np.int64)
        volume_in, volume_out = node_volumes(fixed, source, target, volume)
        dag = CanonicalDag(
            name=self._name,
            scopes=tuple(self._scopes),
            kernels=tuple(self._kernels),
            tensors=tuple(self._tensors.values()),
            orders=tuple(self._orders),
            kind=_read_only(np.where(fixed == _TASK, kinds_of_tasks(volume_in, volume_out), fixed).astype(np.int8)),
            volume_in=_read_only(volume_in),
            volume_out=_read_only(volume_out),
            node_scope=_column(self._node_scope, np.int32),
            node_member=_column(self._node_member, np.int64),
            edge_source=source,
            edge_target=target,
            edge_volume=volume,
            edge_distinct=_column(self._edge_distinct, np.int64),
            edge_element_bytes=_column(self._edge_bytes, np.int8),
            edge_order=_column(self._edge_order, np.int32),
            edge_first=_column(self._edge_first, np.int64),
            edge_taken=_column(self._edge_taken, np.int64),
        )
        verify(dag, error)
        return dag

    def _add_node(self, kind: int, scope: int, member: int) -> int:
        self._fixed_kind.append(kind)
        self._node_scope.append(scope)
        self._node_member.append(member)
        return len(self._node_scope) - 1


_TASK = -1


def _column(values: array[int], dtype: type[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    return _read_only(np.array(values, dtype=dtype))


def _read_only(column: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    column.setflags(write=False)
    return column

"""Reads the records of a DAG file, whatever its syntax; every fault is one line for the user."""

from bisect import bisect
from collections.abc import Iterable

import numpy as np

from dfcompile.canonical_dag.builder import UNORDERED, DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, CanonicalDag, Int64
from dfcompile.canonical_dag.forms.reference import Reference, parse_reference
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor
from dfcompile.canonical_dag.kinds import NodeKind
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError, nearest

FORMAT = "dfcompile-dag/1"
LARGEST_NODES = 10_000_000
LARGEST_EDGES = 40_000_000
TASK = "task"  # in a file: a computational node of whatever kind its volumes make of it

_KINDS = {kind.name.lower(): kind for kind in NodeKind}


class DagReader:
    """Takes the records of a file in order: kernels before scopes, nodes before edges.

    Nothing is allocated before the announced counts are checked. ``where`` names the line or the record in errors.
    """

    def __init__(self, name: str) -> None:
        self._builder = DagBuilder(name)
        self._kernels: dict[str, int] = {}
        self._scopes: dict[str, tuple[int, str | None, str]] = {}
        self._places: dict[str, list[tuple[int, ...]]] = {}  # scope -> sorted (first member, count, first node)
        self._stated: list[tuple[int, int, NodeKind]] = []  # first node, count, kind
        self._references: dict[str, Reference] = {}
        self._tensors: set[str] = set()
        self._nodes = 0
        self._edges = 0

    def kernel(self, kernel: Kernel, where: str) -> None:
        """Add a kernel."""
        if kernel.name in self._kernels:
            raise UserError(f"{where}: kernel {kernel.name!r} given twice against once")
        self._kernels[kernel.name] = self._builder.add_kernel(kernel)

    def tensor(self, tensor: KernelTensor, where: str) -> None:
        """Add a tensor."""
        if tensor.name in self._tensors:
            raise UserError(f"{where}: tensor {tensor.name!r} given twice against once")
        self._tensors.add(tensor.name)
        self._builder.add_tensor(tensor)

    def orders(self, orders: Iterable[str]) -> None:
        """Fix the numbers of access orders."""
        for order in orders:
            self._builder.add_order(order)

    def scope(self, name: str, where: str, kernel: str | None = None, origin: str | None = None) -> int:
        """Add a scope, or find it again; kernel and origin are given where it first appears.

        Raises:
            UserError: an unknown kernel, or a second kernel or origin.
        """
        known = self._scopes.get(name)
        if known is not None:
            number, first_kernel, first_origin = known
            if kernel not in (None, first_kernel) or origin not in (None, first_origin):
                raise UserError(f"{where}: scope {name!r} with another kernel or origin against one")
            return number
        if kernel is not None and kernel not in self._kernels:
            raise UserError(f"{where}: scope {name!r}: unknown kernel {kernel!r}{nearest(kernel, self._kernels)}")
        kernel_number = NO_KERNEL if kernel is None else self._kernels[kernel]
        number = self._builder.add_scope(name, kernel_number, origin or name)
        self._scopes[name] = (number, kernel, origin or name)
        return number

    def nodes(self, kind: str, name: str, where: str, kernel: str | None = None, origin: str | None = None) -> None:
        """Add the node or the members that a reference names.

        Raises:
            UserError: an unknown kind, or more nodes than any graph may have.
        """
        if kind != TASK and kind not in _KINDS:
            raise UserError(f"{where}: node {name!r}: kind {kind!r} against {TASK}, {', '.join(_KINDS)}")
        reference = parse_reference(name, where)
        self._nodes += reference.size
        if self._nodes > LARGEST_NODES:
            raise UserError(f"{where}: node {name!r}: {self._nodes} nodes announced against at most {LARGEST_NODES}")
        places = self._places.setdefault(reference.scope, [])
        at = bisect(places, (reference.first, LARGEST_NODES + 1))
        if (at and places[at - 1][0] + places[at - 1][1] > reference.first) or (
            at < len(places) and places[at][0] < reference.first + reference.size
        ):
            raise UserError(f"{where}: node {name!r}: given twice against once")
        scope = self.scope(reference.scope, where, kernel, origin)
        if kind == TASK or _KINDS[kind].is_computational:
            if reference.first == NO_MEMBER:
                node = self._builder.add_task(scope)
            else:
                node = self._builder.add_tasks(scope, reference.size, reference.first).start
            if kind != TASK:
                self._stated.append((node, reference.size, _KINDS[kind]))
        elif reference.size > 1 or reference.first != NO_MEMBER:
            raise UserError(f"{where}: {kind} {name!r}: a family against a single node")
        else:
            node = self._builder.add_memory(scope, _KINDS[kind])
        places.insert(at, (reference.first, reference.size, node))

    def edges(
        self,
        source: str,
        target: str,
        volume: int,
        where: str,
        element_bytes: int = 4,
        order: str = UNORDERED,
        distinct: int | None = None,
    ) -> None:
        """Add the edges between two references: one to many, many to one, or as many to as many.

        Raises:
            UserError: naming the edge.
        """
        start, end = self._reference(source, where), self._reference(target, where)
        if not 1 <= volume <= LARGEST_VOLUME:
            raise UserError(f"{where}: edge {source!r} -> {target!r}: volume {volume} against 1 to {LARGEST_VOLUME}")
        different = volume if distinct is None else distinct
        if not 1 <= different <= volume:
            raise UserError(f"{where}: edge {source!r} -> {target!r}: distinct {different} against 1 to {volume}")
        if not 1 <= element_bytes <= 127:
            raise UserError(
                f"{where}: edge {source!r} -> {target!r}: {element_bytes} bytes per element against 1 to 127"
            )
        if start.size != end.size and start.size != 1 and end.size != 1:
            raise UserError(f"{where}: edge {source!r} -> {target!r}: {start.size} nodes to {end.size} against as many")
        count = max(start.size, end.size)
        self._edges += count
        if self._edges > LARGEST_EDGES:
            raise UserError(
                f"{where}: edge {source!r} -> {target!r}: {self._edges} edges announced against at most {LARGEST_EDGES}"
            )
        if count == 1:
            ends = self._node(start, where), self._node(end, where)
            self._builder.add_edge(*ends, volume, element_bytes, order, different)
            return
        sources, targets = np.resize(self._members(start, where), count), np.resize(self._members(end, where), count)
        volumes, differing = (np.full(count, elements, dtype=np.int64) for elements in (volume, different))
        self._builder.add_edges(sources, targets, volumes, element_bytes, order, differing)

    def finish(self) -> CanonicalDag:
        """Verify and freeze.

        Raises:
            UserError: the graph is not canonical, or a stated kind is not what the volumes say.
        """
        dag = self._builder.finish(UserError)
        for first, count, kind in self._stated:
            for node in range(first, first + count) if np.any(dag.kind[first : first + count] != kind) else ():
                if dag.kind[node] != kind:
                    raise UserError(
                        f"node {dag.node_name(node)!r}: kind {kind.name.lower()} against volume in "
                        f"{dag.volume_in[node]}, out {dag.volume_out[node]} ({NodeKind(dag.kind[node]).name.lower()})"
                    )
        return dag

    def _reference(self, text: str, where: str) -> Reference:
        known = self._references.get(text)
        if known is None:
            known = self._references[text] = parse_reference(text, where)
        return known

    def _node(self, reference: Reference, where: str) -> int:
        places = self._places.get(reference.scope, [])
        at = bisect(places, (reference.first, LARGEST_NODES + 1)) - 1
        if at >= 0 and reference.first < places[at][0] + places[at][1]:
            return places[at][2] + reference.first - places[at][0]
        raise UserError(f"{where}: unknown node {str(reference)!r}{nearest(reference.scope, self._places)}")

    def _members(self, reference: Reference, where: str) -> Int64:
        """Return the numbers of the nodes, which may stand in several runs."""
        places = self._places.get(reference.scope, [])
        pieces: list[Int64] = []
        wanted, end = reference.first, reference.first + reference.size
        for first, count, node in places[max(0, bisect(places, (wanted, LARGEST_NODES + 1)) - 1) :]:
            if wanted >= end:
                break
            if first <= wanted < first + count:
                stop = min(end, first + count)
                pieces.append(np.arange(node + wanted - first, node + stop - first, dtype=np.int64))
                wanted = stop
        if wanted < end:
            missing = Reference(reference.scope, wanted, 1)
            raise UserError(f"{where}: unknown node {str(missing)!r}{nearest(reference.scope, self._places)}")
        return np.concatenate(pieces)

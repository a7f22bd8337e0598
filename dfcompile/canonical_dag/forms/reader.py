"""Reads the records of a DAG file, whatever its syntax; every fault is one line for the user."""

from bisect import bisect
from typing import TypeAlias

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, UNORDERED, CanonicalDag, Int64, NodeKind
from dfcompile.canonical_dag.forms.reference import Listing, Reference, parse_ends, parse_reference, shortened
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError, nearest

FORMAT = "dfcompile-dag/1"
LARGEST_NODES = 10_000_000
LARGEST_EDGES = 40_000_000
TASK = "task"  # in a file: a computational node of whatever kind its volumes make of it

Ends: TypeAlias = range | Int64  # nodes in succession, or one by one

_KINDS = {kind.name.lower(): kind for kind in NodeKind}
_MOST_RUNS = 2**17  # of edges, kept as numbers until they become columns: some ten MB


class DagReader(DagBuilder):
    """Takes the records of a file in order, by names: kernels before scopes, nodes before edges.

    Nothing is allocated before the announced counts are checked. ``where`` names the line or the record in errors.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._places: dict[str, list[tuple[int, ...]]] = {}  # scope -> sorted (first member, count, first node)
        self._stated: list[tuple[int, int, NodeKind]] = []  # first node, count, kind
        self._ends: dict[str, Ends] = {}  # by reference
        self._place_columns: dict[str, tuple[int, Int64]] = {}  # scope -> number of its places, and these as columns
        self._runs: list[tuple[int | Int64, ...]] = []  # of edges: source, its step, target, its step, count, fields
        self._nodes = 0
        self._edges = 0

    def kernel(self, kernel: Kernel, where: str) -> None:
        """Add a kernel."""
        if kernel.name in self._kernels:
            raise UserError(f"{where}: kernel {kernel.name!r} given twice against once")
        self.add_kernel(kernel)

    def tensor(self, tensor: KernelTensor, where: str) -> None:
        """Add a tensor."""
        if tensor.name in self._tensors:
            raise UserError(f"{where}: tensor {tensor.name!r} given twice against once")
        self.add_tensor(tensor)

    def scope(self, name: str, where: str, kernel: str | None = None, origin: str | None = None) -> int:
        """Add a scope, or find it again; kernel and origin are given where it first appears.

        Raises:
            UserError: an unknown kernel, or a second kernel or origin.
        """
        if name in self._scopes:
            number, scope = self._scopes[name]
            is_other = kernel is not None and (kernel not in self._kernels or self._kernels[kernel][0] != scope.kernel)
            if is_other or origin not in (None, scope.origin):
                raise UserError(f"{where}: scope {name!r} with another kernel or origin against one")
            return number
        if kernel is not None and kernel not in self._kernels:
            raise UserError(f"{where}: scope {name!r}: unknown kernel {kernel!r}{nearest(kernel, self._kernels)}")
        return self.add_scope(name, NO_KERNEL if kernel is None else self._kernels[kernel][0], origin or name)

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
            node = self.add_tasks(scope, reference.size, reference.first).start  # or the one that is no member
            if kind != TASK:
                self._stated.append((node, reference.size, _KINDS[kind]))
        elif _KINDS[kind] is NodeKind.BUFFER:
            node = self.add_buffers(scope, reference.size, reference.first).start
        elif reference.size > 1 or reference.first != NO_MEMBER:
            raise UserError(f"{where}: {kind} {name!r}: a family against a single node")
        else:
            node = self.add_memory(scope, _KINDS[kind])
        places.insert(at, (reference.first, reference.size, node))

    def edges(
        self,
        source: str,
        target: str,
        volume: int | Int64,
        where: str,
        element_bytes: int = 4,
        order: str = UNORDERED,
        distinct: int | None = None,
    ) -> None:
        """Add the edges between two references: one to many, many to one, or as many to as many.

        Args:
            source: reference to the producers.
            target: reference to the consumers.
            volume: elements on each edge, or a column of one per edge.
            where: the line or the record.
            element_bytes: per element.
            order: of access.
            distinct: different elements on each edge; all of them without.

        Raises:
            UserError: naming the edge.
        """
        start, end = self._ends_of(source, where), self._ends_of(target, where)
        starts, stops = len(start), len(end)
        count = max(starts, stops)
        least, most = (volume, volume) if isinstance(volume, int) else (int(volume.min()), int(volume.max()))
        fault = volume_fault(least, most, least if distinct is None else distinct, element_bytes)
        if not fault and min(starts, stops) not in {1, count}:
            fault = f"{starts} nodes to {stops} against as many"
        if not fault and not isinstance(volume, int) and len(volume) != count:
            fault = f"{len(volume)} volumes against {count}"
        self._edges += count
        if not fault and self._edges > LARGEST_EDGES:
            fault = f"{self._edges} edges announced against at most {LARGEST_EDGES}"
        if fault:
            raise UserError(f"{where}: edge {shortened(source)!r} -> {shortened(target)!r}: {fault}")
        fields = volume, volume if distinct is None else distinct, element_bytes, self.add_order(order)
        if isinstance(start, range) and isinstance(end, range) and isinstance(volume, int):
            # A run is kept as a few numbers, so that no object per edge is made.
            self._runs.append((start.start, starts > 1, end.start, stops > 1, count, *fields))
            if len(self._runs) > _MOST_RUNS:
                self._flush()
        else:
            self._flush()
            columns = np.broadcast_arrays(_numbers(start), _numbers(end), *fields)
            self.add_edge_columns(*(column.astype(np.int64) for column in columns))

    def _flush(self) -> None:
        """Make columns of the runs."""
        if not self._runs:
            return
        runs = np.array(self._runs, dtype=np.int64).reshape(-1, 9).T
        source, source_step, target, target_step, count = runs[:5]
        place = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        ends = (np.repeat(end, count) + place * np.repeat(step, count)
                for end, step in ((source, source_step), (target, target_step)))  # fmt: skip
        self.add_edge_columns(*ends, *(np.repeat(column, count) for column in runs[5:]))
        self._runs.clear()

    def read(self) -> CanonicalDag:
        """Verify and freeze.

        Raises:
            UserError: the graph is not canonical, or a stated kind is not what the volumes say.
        """
        self._flush()
        dag = self.finish(UserError)
        first, count, kind = np.array(self._stated, dtype=np.int64).reshape(-1, 3).T
        ends = np.cumsum(count)
        nodes = np.arange(int(count.sum()), dtype=np.int64) + np.repeat(first - ends + count, count)
        stated = np.repeat(kind, count)
        for place in np.flatnonzero(dag.kind[nodes] != stated).tolist():
            raise wrong_kind(dag, int(nodes[place]), NodeKind(int(stated[place])))
        return dag

    def _ends_of(self, text: str, where: str) -> Ends:
        known = self._ends.get(text)
        if known is not None:
            return known
        reference = parse_ends(text, where)
        if isinstance(reference, Listing):
            return self._listed(reference, where)
        found = self._members(reference, where)
        if isinstance(found, range):
            self._ends[text] = found
        return found

    def _members(self, reference: Reference, where: str) -> Ends:
        """Return the nodes of a reference, whose members may stand in several places."""
        places = self._places.get(reference.scope, [])
        wanted, end = reference.first, reference.first + reference.size
        at = max(bisect(places, (wanted, LARGEST_NODES + 1)) - 1, 0)
        runs: list[range] = []
        while wanted < end:
            first, count, node = places[at] if at < len(places) else (wanted, 0, 0)
            if not first <= wanted < first + count:
                raise self._unknown(Reference(reference.scope, wanted, 1), where)
            stop = min(end, first + count)
            runs.append(range(node + wanted - first, node + stop - first))
            wanted, at = stop, at + 1
        return runs[0] if len(runs) == 1 else np.concatenate([_numbers(run) for run in runs])

    def _listed(self, listing: Listing, where: str) -> Int64:
        """Return the nodes of members that are listed one by one."""
        places = self._places.get(listing.scope, [])
        known, columns = self._place_columns.get(listing.scope, (0, np.zeros((3, 0), dtype=np.int64)))
        if known != len(places):
            columns = np.array(places, dtype=np.int64).T
            self._place_columns[listing.scope] = (len(places), columns)
        first, count, node = columns
        at = np.searchsorted(first, listing.members, side="right") - 1
        missing = at < 0
        if len(places):
            missing |= listing.members >= (first + count)[at]
        if missing.any():
            member = int(listing.members[np.argmax(missing)])
            raise self._unknown(Reference(listing.scope, member, 1), where)
        found: Int64 = listing.members - first[at] + node[at]
        return found

    def _unknown(self, reference: Reference, where: str) -> UserError:
        return UserError(f"{where}: unknown node {str(reference)!r}{nearest(reference.scope, self._places)}")


def wrong_kind(dag: CanonicalDag, node: int, kind: NodeKind) -> UserError:
    """Return the error of a node whose stated kind is not what the volumes make of it."""
    volumes = f"volume in {dag.volume_in[node]}, out {dag.volume_out[node]} ({NodeKind(dag.kind[node]).name.lower()})"
    return UserError(f"node {dag.node_name(node)!r}: kind {kind.name.lower()} against {volumes}")


def volume_fault(least: int, most: int, different: int, element_bytes: int) -> str:
    """Return what is wrong with the volumes of edges, or nothing.

    Args:
        least: the least volume of them.
        most: the largest one.
        different: different elements on each.
        element_bytes: per element.
    """
    if least < 1 or most > LARGEST_VOLUME:
        return f"volume {least if least < 1 else most} against 1 to {LARGEST_VOLUME}"
    if not 1 <= different <= least:
        return f"distinct {different} against 1 to {least}"
    if not 1 <= element_bytes <= 127:
        return f"{element_bytes} bytes per element against 1 to 127"
    return ""


def _numbers(ends: Ends) -> Int64:
    return np.arange(ends.start, ends.stop, dtype=np.int64) if isinstance(ends, range) else ends

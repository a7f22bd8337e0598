"""Reads the records of a DAG file, text or JSON; every fault becomes an error message of one line."""

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
TASK = "task"  # kind in a file: a computational node, whose volumes decide which kind it is

Ends: TypeAlias = range | Int64  # numbers of nodes: a range if they are consecutive, else an array

_KINDS = {kind.name.lower(): kind for kind in NodeKind}
_MOST_RUNS = 2**17  # runs of edges that wait to become columns: about ten MB


class DagReader(DagBuilder):
    """Builds a DAG from the records of a file, in order: kernels before scopes, nodes before edges.

    Counts are checked before anything of that size is allocated. ``where`` is the line or the record, for errors.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._member_runs: dict[str, list[tuple[int, ...]]] = {}  # scope -> sorted (first member, count, first node)
        self._member_run_columns: dict[str, tuple[int, Int64]] = {}  # scope -> number of its runs, the runs as columns
        self._stated_kinds: list[tuple[int, int, NodeKind]] = []  # first node, count, kind
        self._ends: dict[str, Ends] = {}  # by the text of the reference
        self._edge_runs: list[tuple[int | Int64, ...]] = []  # source, its step, target, its step, count, fields
        self._nodes = 0  # announced so far
        self._edges = 0  # likewise

    def kernel(self, kernel: Kernel, where: str) -> None:
        """Add a kernel; refuse one that was added before."""
        if kernel.name in self._kernels:
            raise UserError(f"{where}: kernel {kernel.name!r} given twice against once")
        self.add_kernel(kernel)

    def tensor(self, tensor: KernelTensor, where: str) -> None:
        """Add a tensor; refuse one that was added before."""
        if tensor.name in self._tensors:
            raise UserError(f"{where}: tensor {tensor.name!r} given twice against once")
        self.add_tensor(tensor)

    def scope(self, name: str, where: str, kernel: str | None = None, origin: str | None = None) -> int:
        """Return the number of a scope, which is added where it first appears, with its kernel and origin.

        Raises:
            UserError: the kernel is unknown, or kernel or origin are not those of the first time.
        """
        if name in self._scopes:
            number, scope = self._scopes[name]
            differs = kernel is not None and (kernel not in self._kernels or self._kernels[kernel][0] != scope.kernel)
            if differs or origin not in (None, scope.origin):
                raise UserError(f"{where}: scope {name!r} with another kernel or origin against one")
            return number
        if kernel is not None and kernel not in self._kernels:
            raise UserError(f"{where}: scope {name!r}: unknown kernel {kernel!r}{nearest(kernel, self._kernels)}")
        return self.add_scope(name, NO_KERNEL if kernel is None else self._kernels[kernel][0], origin or name)

    def nodes(self, kind: str, name: str, where: str, kernel: str | None = None, origin: str | None = None) -> None:
        """Add the node, or the members of a scope, that a reference names.

        Raises:
            UserError: an unknown kind, or more nodes than any graph may have.
        """
        if kind != TASK and kind not in _KINDS:
            raise UserError(f"{where}: node {name!r}: kind {kind!r} against {TASK}, {', '.join(_KINDS)}")
        reference = parse_reference(name, where)
        self._nodes += reference.size
        if self._nodes > LARGEST_NODES:
            raise UserError(f"{where}: node {name!r}: {self._nodes} nodes announced against at most {LARGEST_NODES}")
        runs = self._member_runs.setdefault(reference.scope, [])
        position = bisect(runs, (reference.first, LARGEST_NODES + 1))
        if (position and runs[position - 1][0] + runs[position - 1][1] > reference.first) or (
            position < len(runs) and runs[position][0] < reference.first + reference.size
        ):
            raise UserError(f"{where}: node {name!r}: given twice against once")
        scope = self.scope(reference.scope, where, kernel, origin)
        if kind == TASK or _KINDS[kind].is_computational:
            node = self.add_tasks(scope, reference.size, reference.first).start  # the first member, or the single node
            if kind != TASK:
                self._stated_kinds.append((node, reference.size, _KINDS[kind]))
        elif _KINDS[kind] is NodeKind.BUFFER:
            node = self.add_buffers(scope, reference.size, reference.first).start
        elif reference.size > 1 or reference.first != NO_MEMBER:
            raise UserError(f"{where}: {kind} {name!r}: a family against a single node")
        else:
            node = self.add_memory(scope, _KINDS[kind])
        runs.insert(position, (reference.first, reference.size, node))

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
            volume: elements on each edge: one number for all, or an array with one per edge.
            where: the line or the record, for errors.
            element_bytes: bytes per element.
            order: in which elements are accessed.
            distinct: distinct elements on each edge; by default all are.

        Raises:
            UserError: naming the edge.
        """
        sources, targets = self._ends_of(source, where), self._ends_of(target, where)
        count = max(len(sources), len(targets))
        least, most = (volume, volume) if isinstance(volume, int) else (int(volume.min()), int(volume.max()))
        fault = volume_fault(least, most, least if distinct is None else distinct, element_bytes)
        if not fault and min(len(sources), len(targets)) not in {1, count}:
            fault = f"{len(sources)} nodes to {len(targets)} against as many"
        if not fault and not isinstance(volume, int) and len(volume) != count:
            fault = f"{len(volume)} volumes against {count}"
        self._edges += count
        if not fault and self._edges > LARGEST_EDGES:
            fault = f"{self._edges} edges announced against at most {LARGEST_EDGES}"
        if fault:
            raise UserError(f"{where}: edge {shortened(source)!r} -> {shortened(target)!r}: {fault}")
        fields = volume, volume if distinct is None else distinct, element_bytes, self.add_order(order)
        if isinstance(sources, range) and isinstance(targets, range) and isinstance(volume, int):
            # No object is made per edge. The step is 1 from node to node of several, 0 if one node has all edges.
            self._edge_runs.append((sources.start, len(sources) > 1, targets.start, len(targets) > 1, count, *fields))
            if len(self._edge_runs) > _MOST_RUNS:
                self._flush_edge_runs()
        else:
            self._flush_edge_runs()
            columns = np.broadcast_arrays(_numbers(sources), _numbers(targets), *fields)
            self.add_edge_columns(*(column.astype(np.int64) for column in columns))

    def _flush_edge_runs(self) -> None:
        """Turn the runs of edges that wait into columns, in the order of the file."""
        if not self._edge_runs:
            return
        runs = np.array(self._edge_runs, dtype=np.int64).reshape(-1, 9).T
        source, source_step, target, target_step, count = runs[:5]
        index_in_run = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        ends = (np.repeat(first, count) + index_in_run * np.repeat(step, count)
                for first, step in ((source, source_step), (target, target_step)))  # fmt: skip
        self.add_edge_columns(*ends, *(np.repeat(column, count) for column in runs[5:]))
        self._edge_runs.clear()

    def read(self) -> CanonicalDag:
        """Return the DAG, verified.

        Raises:
            UserError: the graph is not canonical, or a node is not of its stated kind by its volumes.
        """
        self._flush_edge_runs()
        dag = self.finish(UserError)
        first, count, kind = np.array(self._stated_kinds, dtype=np.int64).reshape(-1, 3).T
        ends = np.cumsum(count)
        nodes = np.arange(int(count.sum()), dtype=np.int64) + np.repeat(first - ends + count, count)
        stated = np.repeat(kind, count)
        for wrong in np.flatnonzero(dag.kind[nodes] != stated).tolist():
            raise wrong_kind(dag, int(nodes[wrong]), NodeKind(int(stated[wrong])))
        return dag

    def _ends_of(self, text: str, where: str) -> Ends:
        """Return the nodes that a reference or a list names; ranges are kept, as files repeat their references."""
        known = self._ends.get(text)
        if known is not None:
            return known
        reference = parse_ends(text, where)
        if isinstance(reference, Listing):
            return self._listed(reference, where)
        nodes = self._members(reference, where)
        if isinstance(nodes, range):
            self._ends[text] = nodes
        return nodes

    def _members(self, reference: Reference, where: str) -> Ends:
        """Return the nodes of a reference, whose members may have been added in several runs."""
        runs = self._member_runs.get(reference.scope, [])
        member, end = reference.first, reference.first + reference.size
        position = max(bisect(runs, (member, LARGEST_NODES + 1)) - 1, 0)
        nodes: list[range] = []
        while member < end:
            first, count, node = runs[position] if position < len(runs) else (member, 0, 0)
            if not first <= member < first + count:
                raise self._unknown(Reference(reference.scope, member, 1), where)
            stop = min(end, first + count)
            nodes.append(range(node + member - first, node + stop - first))
            member, position = stop, position + 1
        return nodes[0] if len(nodes) == 1 else np.concatenate([_numbers(part) for part in nodes])

    def _listed(self, listing: Listing, where: str) -> Int64:
        """Return the nodes of members that are listed one by one."""
        runs = self._member_runs.get(listing.scope, [])
        converted, columns = self._member_run_columns.get(listing.scope, (0, np.zeros((3, 0), dtype=np.int64)))
        if converted != len(runs):
            columns = np.array(runs, dtype=np.int64).T
            self._member_run_columns[listing.scope] = (len(runs), columns)
        first, count, node = columns
        run = np.searchsorted(first, listing.members, side="right") - 1
        missing = run < 0
        if len(runs):
            missing |= listing.members >= (first + count)[run]
        if missing.any():
            member = int(listing.members[np.argmax(missing)])
            raise self._unknown(Reference(listing.scope, member, 1), where)
        nodes: Int64 = listing.members - first[run] + node[run]
        return nodes

    def _unknown(self, reference: Reference, where: str) -> UserError:
        return UserError(f"{where}: unknown node {str(reference)!r}{nearest(reference.scope, self._member_runs)}")


def wrong_kind(dag: CanonicalDag, node: int, kind: NodeKind) -> UserError:
    """Return the error for a node whose stated kind does not follow from its volumes."""
    volumes = f"volume in {dag.volume_in[node]}, out {dag.volume_out[node]} ({NodeKind(dag.kind[node]).name.lower()})"
    return UserError(f"node {dag.node_name(node)!r}: kind {kind.name.lower()} against {volumes}")


def volume_fault(least: int, most: int, distinct: int, element_bytes: int) -> str:
    """Return what is wrong with the volumes of edges, empty if nothing is.

    Args:
        least: the smallest volume.
        most: the largest volume.
        distinct: distinct elements on each edge.
        element_bytes: bytes per element.
    """
    if least < 1 or most > LARGEST_VOLUME:
        return f"volume {least if least < 1 else most} against 1 to {LARGEST_VOLUME}"
    if not 1 <= distinct <= least:
        return f"distinct {distinct} against 1 to {least}"
    if not 1 <= element_bytes <= 127:
        return f"{element_bytes} bytes per element against 1 to 127"
    return ""


def _numbers(ends: Ends) -> Int64:
    return np.arange(ends.start, ends.stop, dtype=np.int64) if isinstance(ends, range) else ends

"""The one verifier of canonical DAGs: every invariant, checked on the arrays in near-linear time."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.analysis import nodes_on_a_cycle
from dfcompile.canonical_dag.dag import (
    COLUMNS,
    EDGE_COLUMNS,
    NO_KERNEL,
    NO_MEMBER,
    Bool,
    CanonicalDag,
    NodeKind,
    kinds_of_tasks,
    node_volumes,
)
from dfcompile.canonical_dag.kernel import Kernel, LoopKind, LoopPart
from dfcompile.errors import DfcompileError, VerificationError

LARGEST_VOLUME = 2**48  # elements on one edge: far above any memory, low enough that int64 sums stay exact
LARGEST_TOTAL = 2**62


def verify(dag: CanonicalDag, error: Callable[[str], DfcompileError] = VerificationError) -> None:
    """Check every invariant of a canonical DAG [dematteis23, section 3].

    * Columns have their documented type and length and are read-only; every index is in range.
    * Names of scopes, nodes, kernels and tensors are unique; a kernel and a tensor has a positive size.
    * Every volume is positive and no node is its own successor, directly or along a cycle.
      Several edges between one pair of nodes are legal: an operator may read one tensor twice.
    * Of the elements on an edge at least one is different, and at most all.
    * All input edges of a computational node carry one volume I, all output edges one volume O; its kind is what
      I and O say; it has at least one edge. A buffer stores the sum of its input edges.
    * No edge joins two buffers (only tasks move data). A pseudo source has no input edge, a pseudo sink no output edge.

    Args:
        dag: to check.
        error: what to raise; a reader of user files passes ``UserError``.

    Raises:
        VerificationError: (or ``error``) one line naming the node or the edge and the invariant.
    """
    for check in (_columns, _names, _edges, _order, _memory, _volumes, _kinds):
        for fault in check(dag):
            raise error(fault)


def edge_name(dag: CanonicalDag, edge: int) -> str:
    """Return the name of an edge, such as ``'conv1.im2col' -> 'conv1_B'``."""
    return f"{dag.node_name(int(dag.edge_source[edge]))!r} -> {dag.node_name(int(dag.edge_target[edge]))!r}"


def reject_node(dag: CanonicalDag, broken: Bool, rule: str) -> None:
    """Reject the first node that breaks a rule.

    Raises:
        VerificationError: naming it.
    """
    if broken.any():
        raise VerificationError(f"node {dag.node_name(int(np.argmax(broken)))!r}: {rule}")


def reject_edge(dag: CanonicalDag, broken: Bool, rule: str) -> None:
    """Reject the first edge that breaks a rule.

    Raises:
        VerificationError: naming it.
    """
    if broken.any():
        raise VerificationError(f"edge {edge_name(dag, int(np.argmax(broken)))}: {rule}")


def _columns(dag: CanonicalDag) -> Iterator[str]:
    for name, dtype in COLUMNS.items():
        column: npt.NDArray[np.generic] = getattr(dag, name)
        length = dag.edges_count if name in EDGE_COLUMNS else dag.nodes_count
        if column.dtype != dtype or column.shape != (length,):
            yield f"column {name}: {column.dtype}{column.shape} against {np.dtype(dtype)}({length},)"
        if column.flags.writeable:
            yield f"column {name}: writeable against read-only"
    yield from _out_of_range("node", "scope", dag.node_scope, len(dag.scopes))
    yield from _out_of_range("edge", "source", dag.edge_source, dag.nodes_count)
    yield from _out_of_range("edge", "target", dag.edge_target, dag.nodes_count)
    yield from _out_of_range("edge", "order", dag.edge_order, len(dag.orders))
    for node in _true(dag.node_member < NO_MEMBER):
        yield f"node {node}: member {dag.node_member[node]} against 0 or more"
    for node in _true((dag.kind < 0) | (dag.kind > max(NodeKind))):
        yield f"node {dag.node_name(node)!r}: kind {dag.kind[node]} against 0 to {int(max(NodeKind))}"


def _names(dag: CanonicalDag) -> Iterator[str]:
    for what, named in (("scope", dag.scopes), ("kernel", dag.kernels), ("tensor", dag.tensors)):
        yield from _repeated(what, [each.name for each in named])
    yield from _repeated("order", list(dag.orders))
    for scope in dag.scopes:
        if not NO_KERNEL <= scope.kernel < len(dag.kernels):
            yield f"scope {scope.name!r}: kernel {scope.kernel} against {len(dag.kernels)} kernels"
    for kernel in dag.kernels:
        for dimension, size in _sizes(kernel).items():
            if size < 1:
                yield f"kernel {kernel.name!r}: {dimension} {size} against 1 or more"
        if kernel.memory_bytes < 0:
            yield f"kernel {kernel.name!r}: memory_bytes {kernel.memory_bytes} against 0 or more"
    yield from _loops(dag)
    for tensor in dag.tensors:
        if tensor.elements < 1 or tensor.element_bytes < 1:
            held = f"{tensor.elements} elements of {tensor.element_bytes} bytes"
            yield f"tensor {tensor.name!r}: {held} against 1 or more"
    yield from _repeated_nodes(dag)


def _loops(dag: CanonicalDag) -> Iterator[str]:
    elements = {tensor.name: tensor.elements for tensor in dag.tensors}
    for kernel in dag.kernels:
        for loop in kernel.loops:
            where = f"kernel {kernel.name!r}: loop {loop.name!r}"
            size = _sizes(kernel)[loop.part] if kernel.variant.is_gemm else loop.extent
            if loop.extent < 1 or size % loop.extent:
                yield f"{where}: extent {loop.extent} against a divisor of {loop.part} {size}"
            for arrays, digits in ((kernel.inputs, loop.inputs), (kernel.outputs, loop.outputs)):
                if len(arrays) != len(digits):
                    yield f"{where}: {len(digits)} digits against {len(arrays)} arrays"
                for array, digit in zip(arrays, digits, strict=False):
                    if digit is None or array not in elements:
                        continue
                    if digit.stride < 1 or elements[array] % max(1, digit.stride * loop.extent):
                        period = f"stride {digit.stride} x extent {loop.extent}"
                        yield f"{where}: {period} against a divisor of {elements[array]} elements of {array!r}"
            is_parallel = loop.kind is LoopKind.PARALLEL
            if any((digit is not None) is not is_parallel for digit in loop.outputs):
                yield f"{where}: {loop.kind} against digits of {'every' if is_parallel else 'no'} result"


def _sizes(kernel: Kernel) -> dict[LoopPart, int]:
    return {LoopPart.OUTER: kernel.outer, LoopPart.M: kernel.m, LoopPart.K: kernel.k, LoopPart.N: kernel.n}


def _repeated_nodes(dag: CanonicalDag) -> Iterator[str]:
    by_name = np.lexsort((dag.node_member, dag.node_scope))
    scope, member = dag.node_scope[by_name], dag.node_member[by_name]
    same_scope = scope[1:] == scope[:-1]
    for place in _true(same_scope & (member[1:] == member[:-1])):
        yield f"node {dag.node_name(int(by_name[place + 1]))!r}: two nodes of this name against one"
    for place in _true(same_scope & (member[:-1] == NO_MEMBER)):
        yield f"scope {dag.scopes[scope[place]].name!r}: a single node and a member against either"
    # A single node called 'a[3]' would take the name of member 3 of a family 'a'.
    index = {scope.name: number for number, scope in enumerate(dag.scopes)}
    for number, scope_ in enumerate(dag.scopes):
        family, bracket, rest = scope_.name.rpartition("[")
        if bracket and family in index and rest[:-1].isdecimal() and rest.endswith("]"):
            members = dag.node_member[dag.node_scope == index[family]]
            if np.any(members == int(rest[:-1])) and np.any(dag.node_member[dag.node_scope == number] == NO_MEMBER):
                yield f"node {scope_.name!r}: two nodes of this name against one"


def _edges(dag: CanonicalDag) -> Iterator[str]:
    for edge in _true(dag.edge_volume < 1):
        yield f"edge {edge_name(dag, edge)}: volume {dag.edge_volume[edge]} against 1 or more"
    for edge in _true(dag.edge_volume > LARGEST_VOLUME):
        yield f"edge {edge_name(dag, edge)}: volume {dag.edge_volume[edge]} against at most {LARGEST_VOLUME}"
    for edge in _true(dag.edge_element_bytes < 1):
        yield f"edge {edge_name(dag, edge)}: {dag.edge_element_bytes[edge]} bytes per element against 1 or more"
    for edge in _true(dag.edge_source == dag.edge_target):
        yield f"edge {edge_name(dag, edge)}: a node that follows itself against an acyclic graph"
    total_bytes = float(np.dot(dag.edge_volume.astype(np.float64), dag.edge_element_bytes.astype(np.float64)))
    if total_bytes > LARGEST_TOTAL:
        yield f"graph {dag.name!r}: {total_bytes:.3g} bytes on all edges against at most {LARGEST_TOTAL}"


def _order(dag: CanonicalDag) -> Iterator[str]:
    cycle = nodes_on_a_cycle(dag)
    if cycle:
        shown = [repr(dag.node_name(node)) for node in cycle[:6]] + (["…"] if len(cycle) > 6 else [])
        yield f"node {dag.node_name(cycle[0])!r}: a cycle {' -> '.join([*shown, shown[0]])} against an acyclic graph"


def _memory(dag: CanonicalDag) -> Iterator[str]:
    for edge in _true(dag.is_buffer[dag.edge_source] & dag.is_buffer[dag.edge_target]):
        yield f"edge {edge_name(dag, edge)}: from buffer to buffer against a task at one end"
    for edge in _true(dag.kind[dag.edge_target] == NodeKind.PSEUDO_SOURCE):
        yield f"edge {edge_name(dag, edge)}: into a pseudo source against no input edges"
    for edge in _true(dag.kind[dag.edge_source] == NodeKind.PSEUDO_SINK):
        yield f"edge {edge_name(dag, edge)}: out of a pseudo sink against no output edges"


def _volumes(dag: CanonicalDag) -> Iterator[str]:
    for edge in _true((dag.edge_distinct < 1) | (dag.edge_distinct > dag.edge_volume)):
        found = f"{dag.edge_distinct[edge]} different elements"
        yield f"edge {edge_name(dag, edge)}: {found} against 1 to {dag.edge_volume[edge]}, its volume"
    sides = (("input", dag.edge_target, dag.volume_in), ("output", dag.edge_source, dag.volume_out))
    for side, ends, volumes in sides:
        for edge in _true(dag.is_computational[ends] & (dag.edge_volume != volumes[ends])):
            node = int(ends[edge])
            found = f"{dag.edge_volume[edge]} elements on {side} edge {edge_name(dag, edge)}"
            why = f"all {side} edges of a task carry one volume"
            yield f"node {dag.node_name(node)!r}: {found} against {volumes[node]} on another ({why})"
    expected = node_volumes(dag.kind, dag.edge_source, dag.edge_target, dag.edge_volume)
    for way, column, volumes in zip(("in", "out"), (dag.volume_in, dag.volume_out), expected, strict=True):
        for node in _true(volumes != column):
            yield f"node {dag.node_name(node)!r}: volume {way} {column[node]} against {volumes[node]} on its edges"


def _kinds(dag: CanonicalDag) -> Iterator[str]:
    for node in _true(dag.is_computational & (dag.volume_in == 0) & (dag.volume_out == 0)):
        yield f"node {dag.node_name(node)!r}: a task without edges against one edge or more"
    expected = np.where(dag.is_computational, kinds_of_tasks(dag.volume_in, dag.volume_out), dag.kind)
    for node in _true(expected != dag.kind):
        kind, wanted = (NodeKind(each).name.lower() for each in (dag.kind[node], expected[node]))
        volumes = f"volume in {dag.volume_in[node]}, out {dag.volume_out[node]}"
        yield f"node {dag.node_name(node)!r}: kind {kind} against {wanted} ({volumes})"


def _out_of_range(what: str, field: str, column: npt.NDArray[np.int32], count: int) -> Iterator[str]:
    for place in _true((column < 0) | (column >= count)):
        yield f"{what} {place}: {field} {column[place]} against 0 to {count - 1}"


def _repeated(what: str, names: list[str]) -> Iterator[str]:
    seen = set[str]()
    for name in names:
        if not name:
            yield f"{what}: an empty name against a text"
        if name in seen:
            yield f"{what} {name!r}: two of this name against one"
        seen.add(name)


def _true(condition: Bool) -> Iterator[int]:
    return (int(place) for place in np.flatnonzero(condition))

"""Reads the map scopes and arrays of an SDFG: of one state, with one tasklet in each map scope, by whatever tool."""

import dace
from dace.sdfg.nodes import AccessNode, MapEntry, MapExit, NestedSDFG, Tasklet
from dace.sdfg.utils import get_view_edge
from dace.subsets import Range

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.canonical_dag.kernel import Digit, Kernel
from dfcompile.errors import UserError
from dfcompile.records import replace


def read_lowered(sdfg: dace.SDFG) -> LoweredGraph:
    """Read what extraction needs from a lowered SDFG.

    Raises:
        UserError: it has several states, nested map scopes, copies, or accesses that are not affine.
    """
    states = list(sdfg.states())
    if len(states) != 1 or sdfg.start_block is not states[0] or sdfg.number_of_nodes() != 1:
        raise UserError(f"sdfg {sdfg.name!r}: {sdfg.number_of_nodes()} states or regions against one state")
    return _StateReader(sdfg, states[0]).read()


class _StateReader:
    def __init__(self, sdfg: dace.SDFG, state: dace.SDFGState) -> None:
        self._sdfg = sdfg
        self._state = state
        self._arrays: dict[str, Array] = {}
        self._views: dict[str, tuple[str, int]] = {}  # view -> viewed array or view, offset there
        self._kernels: dict[str, tuple[Kernel, Kernel]] = {}  # by name: as annotated, and without views

    def read(self) -> LoweredGraph:
        nodes = self._state.nodes()
        for node in nodes:
            if isinstance(node, AccessNode):
                self._read_access_node(node)
        bodies = {edge.dst for node in nodes if isinstance(node, MapEntry) for edge in self._state.out_edges(node)}
        for node in nodes:
            if not isinstance(node, AccessNode | MapEntry | MapExit) and node not in bodies:
                what = "a nested SDFG" if isinstance(node, NestedSDFG) else type(node).__name__.lower()
                raise UserError(f"{what} {node.label!r}: at top level against map scopes alone")
        scopes = [self._read_scope(node) for node in nodes if isinstance(node, MapEntry)]
        tasks = tuple(scope for scope in scopes if scope is not None)
        accesses = (access for scope in tasks for access in (*scope.reads, *scope.writes))
        for name in dict.fromkeys(access.array for access in accesses if access.is_indirect):
            self._arrays[name] = replace(self._arrays[name], is_materialised=True)
        return LoweredGraph(str(self._sdfg.name), tasks, self._arrays)

    # -- arrays

    def _read_access_node(self, node: AccessNode) -> None:
        descriptor = node.desc(self._sdfg)
        view_edge = None
        if isinstance(descriptor, dace.data.View):
            view_edge = self._view_edge(node)
            viewed = view_edge.src if view_edge.dst is node else view_edge.dst
            subset = view_edge.data.subset if view_edge.data.data == viewed.data else view_edge.data.other_subset
            strides = _integers(viewed.desc(self._sdfg).strides, f"array {viewed.data!r}: strides")
            where = f"view {node.data!r}: start"
            start = [0] * len(strides) if subset is None else _integers(subset.min_element(), where)
            offset = sum(index * stride for index, stride in zip(start, strides, strict=True))
            self._views[node.data] = (viewed.data, offset)
        elif node.data not in self._arrays:
            self._arrays[node.data] = Array(
                name=node.data,
                shape=_integers(descriptor.shape, f"array {node.data!r}: shape"),
                strides=_integers(descriptor.strides, f"array {node.data!r}: strides") if descriptor.strides else (),
                element_bytes=int(descriptor.dtype.bytes),
                is_transient=bool(descriptor.transient),
                is_materialised=not descriptor.transient or descriptor.storage == dace.StorageType.CPU_Heap,
            )
        for edge in self._state.out_edges(node):
            if isinstance(edge.dst, AccessNode) and not edge.data.is_empty() and edge is not view_edge:
                target = edge.dst
                is_view = isinstance(target.desc(self._sdfg), dace.data.View) and self._view_edge(target) is edge
                if not is_view:
                    raise UserError(f"array {node.data!r}: copied to {target.data!r} against a map scope that copies")

    def _view_edge(self, node: AccessNode) -> "dace.sdfg.graph.MultiConnectorEdge[dace.Memlet]":
        edges = [edge for edge in self._state.in_edges(node) if edge.dst_conn == "views"]
        edges += [edge for edge in self._state.out_edges(node) if edge.src_conn == "views"]
        edge = edges[0] if edges else get_view_edge(self._state, node)
        if edge is None:
            raise UserError(f"view {node.data!r}: no edge to what it views against one")
        return edge

    def _root(self, name: str) -> tuple[str, int]:
        """Return the array behind a chain of views, and the offset in it where the last view starts."""
        offset = 0
        while name in self._views:
            name, start = self._views[name]
            offset += start
        return name, offset

    # -- scopes

    def _read_scope(self, entry: MapEntry) -> MapScope | None:
        tasklet = self._tasklet(entry)
        annotation = Annotation.of_location(tasklet.location, entry.map.label)
        name = annotation.scope
        if annotation.calls:
            call = f"found a call of {annotation.calls}, which can be run (dfcompile.run) but not scheduled,"
            raise UserError(f"node {annotation.origin!r}: {call} against canonical tasks (name another expansion)")
        parameters = [str(parameter) for parameter in entry.map.params]
        for parameter in annotation.spatial:
            if parameter not in parameters:
                raise UserError(f"scope {name!r}: spatial parameter {parameter!r} against {', '.join(parameters)}")
        reads = [self._access(edge.data, parameters, name) for edge in self._state.in_edges(tasklet)]
        writes = [self._access(edge.data, parameters, name) for edge in self._state.out_edges(tasklet)]
        scope = MapScope(
            name=name,
            origin=annotation.origin,
            kernel=self._kernel(annotation.kernel),
            extents=self._extents(entry, name),
            is_spatial=tuple(parameter in annotation.spatial for parameter in parameters),
            reads=tuple(access for access in reads if access is not None),
            writes=tuple(access for access in writes if access is not None),
        )
        if not annotation.is_initialisation:
            return scope
        # Setting what others accumulate to is no task; its accesses were checked above like all others.
        if scope.reads:
            raise UserError(f"scope {name!r}: an initialisation that reads {scope.reads[0].array!r} against constants")
        return None

    def _tasklet(self, entry: MapEntry) -> Tasklet:
        body = list(dict.fromkeys(edge.dst for edge in self._state.out_edges(entry)))
        tasklet = body[0] if body else None
        after = [] if tasklet is None else list(dict.fromkeys(edge.dst for edge in self._state.out_edges(tasklet)))
        is_closed = len(after) == 1 and isinstance(after[0], MapExit) and after[0].map is entry.map
        if len(body) != 1 or not isinstance(tasklet, Tasklet) or not is_closed:
            content = ", ".join(type(node).__name__ for node in [*body, *after])
            raise UserError(f"scope {entry.map.label!r}: contains {content or 'nothing'} against exactly one tasklet")
        return tasklet

    def _extents(self, entry: MapEntry, name: str) -> tuple[int, ...]:
        for connector in entry.in_connectors:
            if not connector.startswith("IN_"):
                raise UserError(f"scope {name!r}: range from {connector!r} at run time against constant ranges")
        extents = []
        for parameter, (begin, end, step) in zip(entry.map.params, entry.map.range.ranges, strict=True):
            where = f"scope {name!r}: range of {str(parameter)!r}"
            first, last, stride = _integers((begin, end, step), where)
            if first != 0 or stride != 1 or last < 0:
                raise UserError(f"{where}: {first}:{last + 1}:{stride} against 0:extent")
            extents.append(last + 1)
        return tuple(extents)

    def _access(self, memlet: dace.Memlet, parameters: list[str], scope: str) -> Access | None:
        if memlet.is_empty():
            return None
        array, base = self._root(memlet.data)
        if array not in self._arrays or memlet.dynamic:
            raise _access_error(scope, memlet, f"{'dynamic' if memlet.dynamic else 'of no array'} against one element")
        if self._is_indirect(memlet):
            return Access(array, base, (0,) * len(parameters), is_indirect=True)
        position = {parameter: number for number, parameter in enumerate(parameters)}
        array_strides = _integers(self._sdfg.arrays[memlet.data].strides, f"array {memlet.data!r}: strides")
        strides = [0] * len(parameters)
        for (begin, end, _), array_stride in zip(memlet.subset.ndrange(), array_strides, strict=True):
            if begin != end:
                raise _access_error(scope, memlet, "a range against one element")
            index = _affine(begin)
            if index is None or any(name not in position for name in index if name):
                reason = f"index {begin} against an affine function of {', '.join(parameters)}"
                raise _access_error(scope, memlet, reason)
            for name, factor in index.items():
                if name:
                    strides[position[name]] += factor * array_stride
                else:
                    base += factor * array_stride
        return Access(array, base, tuple(strides))

    def _is_indirect(self, memlet: dace.Memlet) -> bool:
        """Whether a memlet is one element of a whole array, at an index that the tasklet computes."""
        if memlet.volume != 1 or all(begin == end for begin, end, _ in memlet.subset.ndrange()):
            return False
        return bool(memlet.subset == Range.from_array(self._sdfg.arrays[memlet.data]))

    def _kernel(self, annotated: Kernel | None) -> Kernel | None:
        """Return the kernel of a scope, whose annotation may name views, with the viewed arrays in their place."""
        if annotated is None:
            return None
        known = self._kernels.get(annotated.name)
        if known is None or known[0] != annotated:
            # All scopes of an operator have the same kernel: do this once for a Concat of a thousand operands.
            known = self._kernels[annotated.name] = annotated, self._without_views(annotated)
        return known[1]

    def _without_views(self, kernel: Kernel) -> Kernel:
        """Replace views; digits are offsets in a view, and so are left out where it starts inside the array."""
        inputs, outputs = (tuple(self._root(name)[0] for name in names) for names in (kernel.inputs, kernel.outputs))
        whole_in, whole_out = ([self._is_whole(name) for name in names] for names in (kernel.inputs, kernel.outputs))

        def kept(digits: tuple[Digit | None, ...]) -> tuple[Digit | None, ...]:
            return tuple(digit if whole else None for digit, whole in zip(digits, whole_in, strict=True))

        loops = tuple(replace(loop, inputs=kept(loop.inputs)) for loop in kernel.loops) if all(whole_out) else ()
        return replace(kernel, inputs=inputs, outputs=outputs, loops=loops)

    def _is_whole(self, name: str) -> bool:
        """Whether an array is no view, or a view of a whole array, which has the same offsets."""
        root, start = self._root(name)
        viewed, view = (self._sdfg.arrays[array] for array in (root, name))
        return start == 0 and bool(viewed.total_size == view.total_size)


def _access_error(scope: str, memlet: dace.Memlet, reason: str) -> UserError:
    """Return the error of an access. Only here is its subset turned into text, which is slow in DaCe."""
    return UserError(f"scope {scope!r}: access {memlet.data}[{memlet.subset}]: {reason}")


def _integers(values: "tuple[dace.symbolic.SymbolicType, ...]", where: str) -> tuple[int, ...]:
    try:
        return tuple(int(value) for value in values)
    except TypeError:
        raise UserError(f"{where}: {', '.join(map(str, values))} against constants") from None


def _affine(expression: "dace.symbolic.SymbolicType") -> dict[str, int] | None:
    """Return the factor of each symbol and, under the empty name, the constant; None if not affine."""
    if isinstance(expression, int):
        return {"": expression}
    factors: dict[str, int] = {}
    for term, factor in expression.expand().as_coefficients_dict().items():
        if not (term == 1 or term.is_Symbol) or not factor.is_Integer:
            return None
        factors["" if term == 1 else term.name] = int(factor)
    return factors

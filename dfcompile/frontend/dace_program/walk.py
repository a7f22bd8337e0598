"""The walk through a program as DaCe parsed it: state after state, map after map, each operation on its own.

A map around several operations is divided: each of them becomes one operator over all iterations of the maps around
it. Iterations of a map are independent of each other in DaCe, so that nothing changes but the order; what one
iteration keeps for itself gets a dimension for each of these loops.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import dace
import numpy as np
from dace.sdfg.nodes import AccessNode, CodeNode, MapEntry, MapExit, NestedSDFG, Node, Tasklet
from dace.sdfg.state import ConditionalBlock, ControlFlowBlock, ControlFlowRegion, LoopRegion, SDFGState
from dace.sdfg.utils import dfs_topological_sort

from dfcompile.errors import UserError
from dfcompile.frontend.affine import Affine
from dfcompile.frontend.dace_program.concrete import ConcreteProgram
from dfcompile.frontend.dace_program.emission import Declared, Emission, Nest, write
from dfcompile.frontend.dace_program.expressions import assigned_expression, evaluated, names_in, with_names
from dfcompile.frontend.dace_program.library import Call, Operand, library_call, reduction_of
from dfcompile.frontend.dace_program.places import Accesses, Container, Loop, Place, Scope, Window, along
from dfcompile.frontend.program import Coverage, ModelNode, Port, Program
from dfcompile.frontend.sdfg.identifiers import safe_identifier
from dfcompile.frontend.sdfg.operator_graph import Operator, OperatorGraph, apply_dace_settings

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NUMBERS = frozenset(dace.dtypes.TYPECLASS_TO_STRING)
_PYTHON = "__pystate"  # what DaCe orders calls of Python by
_Inside: TypeAlias = Mapping[MapEntry | None, Sequence[Node]]  # nodes of each map, and outside of all, in order


class Walk:
    """Goes through a parsed program, and has the values of its arrays where it is."""

    def __init__(self, path: Path, emission: Emission) -> None:
        self._path = path
        self._emission = emission
        self._accesses = Accesses()
        self._line = 0
        self._loops = 0

    def run(self, sdfg: dace.SDFG, scope: Scope) -> None:
        """Go through a program.

        Raises:
            UserError: as `region`; the message has the user's file and line.
        """
        try:
            self.region(sdfg, scope)
        except UserError as error:
            where = f"{self._path}:{self._line}" if self._line else f"{self._path}"
            raise UserError(f"{where}: {error}") from error

    def region(self, region: ControlFlowRegion, scope: Scope) -> None:
        """Go through the states of a program one after another.

        Raises:
            UserError: there is a loop, a branch or a node that cannot be taken apart.
        """
        block = region.start_block
        while block is not None:
            if isinstance(block, SDFGState):
                self._state(block, scope)
            elif isinstance(block, ControlFlowRegion) and not isinstance(block, LoopRegion | ConditionalBlock):
                self.region(block, scope)  # one block after the other, as of a function that was called
            else:
                self._move_to(getattr(block, "debuginfo", None))
                self._line = self._line_of_label(block.label)
                if isinstance(block, LoopRegion):
                    over = block.loop_variable or "a condition"
                    found = f"a loop over {over!r} that carries state from one iteration to the next"
                    hint = "dace.map[…]; a fixed number: dace.unroll(range(…))"
                    raise UserError(f"{found} against independent iterations ({hint})")
                found = "a branch that depends on data or on a loop"
                raise UserError(f"{found} against one sequence of operations (use np.where)")
            block = self._next(region, block, scope)

    def _next(self, region: ControlFlowRegion, block: ControlFlowBlock, scope: Scope) -> ControlFlowBlock | None:
        edges = region.out_edges(block)
        if not edges:
            return None
        if len(edges) > 1 or not edges[0].data.is_unconditional():
            raise UserError("a branch that depends on data or on a loop against one sequence of operations")
        for name, value in edges[0].data.assignments.items():
            found = scope.affine(dace.symbolic.pystr_to_symbolic(value))
            if found is None:
                scope.symbols.pop(name, None)  # whoever uses it is refused
            else:
                scope.symbols[name] = found
        return edges[0].dst

    def _line_of_label(self, label: str) -> int:
        """Return the line that DaCe writes behind the name of a region, such as ``for_33``."""
        numbers = [part for part in label.split("_")[1:] if part.isdecimal()]
        return int(numbers[0]) if numbers else self._line

    # -- states and maps

    def _state(self, state: SDFGState, scope: Scope) -> None:
        self._line = self._line_of_label(state.label)  # operations of DaCe's own have no other line
        order = {node: number for number, node in enumerate(dfs_topological_sort(state))}
        inside = {entry: sorted(nodes, key=order.__getitem__) for entry, nodes in state.scope_children().items()}
        known: set[AccessNode] = set()
        for node in sorted(state.data_nodes(), key=order.__getitem__):
            self._view(state, scope, node, known)
        self._nodes(state, scope, None, inside)

    def _view(self, state: SDFGState, scope: Scope, node: AccessNode, known: set[AccessNode]) -> None:
        """Find out what a view sees: of one that is written to, that is behind it, and may be a view as well."""
        if node in known or not isinstance(node.desc(scope.sdfg), dace.data.View):
            return
        known.add(node)
        self._move_to(node.debuginfo)
        edge = dace.sdfg.utils.get_view_edge(state, node)
        if edge is None:
            raise UserError(f"view {node.data!r} of nothing against a view of an array")
        viewed = edge.src if edge.dst is node else edge.dst
        self._view(state, scope, viewed, known)
        source = self._window(scope, viewed.data)
        subset = edge.data.subset if edge.data.data == viewed.data else edge.data.other_subset
        shape = self._shape(node.desc(scope.sdfg), scope, node.data)
        scope.arrays[node.data] = scope.seen(source, subset, shape, node.data)

    def _nodes(self, state: SDFGState, scope: Scope, within: MapEntry | None, inside: _Inside) -> None:
        for node in inside[within]:
            self._move_to(getattr(node, "debuginfo", None))
            if isinstance(node, AccessNode):
                self._copies(state, scope, node)
            elif isinstance(node, MapEntry):
                self._map(state, scope, node, inside)
            elif isinstance(node, NestedSDFG):
                self._nested(state, scope, node)
            elif isinstance(node, Tasklet):
                self._tasklet(state, scope, node)
            elif isinstance(node, CodeNode):
                self._library(state, scope, node)
            elif not isinstance(node, MapExit):
                raise UserError(f"{type(node).__name__} {node.label!r} against maps, NumPy and numpy.linalg")

    def _map(self, state: SDFGState, scope: Scope, entry: MapEntry, inside: _Inside) -> None:
        is_task = any(isinstance(child, NestedSDFG) for child in inside[entry])
        loops, known = list[Loop](), Scope(scope.sdfg, scope.arrays, dict(scope.symbols))
        for parameter, bounds in zip(entry.map.params, entry.map.range.ranges, strict=True):
            steps = known.steps(bounds)
            if steps is None:
                text = f"{bounds[0]}:{bounds[1] + 1}"
                raise UserError(f"range {text} of {parameter!r} depends on data or on another loop")
            first, stride, extent = steps
            if extent < 1:
                return
            known.symbols[parameter] = first
            if extent > 1:
                loops.append(self._loop(extent, is_task=is_task))
                known.symbols[parameter] = {**first, loops[-1].name: stride}
        inner = Scope(scope.sdfg, scope.arrays, known.symbols, (*scope.loops, *loops), scope.outer)
        for child in inside[entry]:
            if isinstance(child, AccessNode) and child.desc(scope.sdfg).transient and child.data not in scope.arrays:
                self._allocate(inner, child.data, inner.loops)
        with self._accesses.within([loop.name for loop in loops]):
            self._nodes(state, inner, entry, inside)

    def _nested(self, state: SDFGState, scope: Scope, node: NestedSDFG) -> None:
        given = node.symbol_mapping.items()
        values = {str(name): scope.affine(dace.symbolic.pystr_to_symbolic(str(value))) for name, value in given}
        symbols = {name: value for name, value in values.items() if value is not None}
        inner = Scope(node.sdfg, {}, symbols, scope.loops, scope.loops)
        ends = [(edge, edge.dst_conn) for edge in state.in_edges(node)]
        ends += [(edge, edge.src_conn) for edge in state.out_edges(node)]
        for edge, connector in ends:
            if edge.data.is_empty() or connector in inner.arrays:
                continue
            outer = self._window(scope, edge.data.data)
            shape = self._shape(node.sdfg.arrays[connector], inner, connector)
            # DaCe's parser hands over whole arrays, whatever part of them the memlet names.
            whole = shape == outer.shape
            inner.arrays[connector] = outer if whole else scope.seen(outer, edge.data.subset, shape, connector)
        self.region(node.sdfg, inner)

    # -- operations

    def _copies(self, state: SDFGState, scope: Scope, node: AccessNode) -> None:
        """Copy from other arrays; a view is none, and moves nothing."""
        for edge in state.in_edges(node):
            is_view = "views" in (edge.dst_conn, edge.src_conn)
            if not isinstance(edge.src, AccessNode) or edge.data.is_empty() or is_view:
                continue
            source, target = (self._window(scope, end.data) for end in (edge.src, node))
            subsets = edge.data.subset, edge.data.other_subset
            if edge.data.data != edge.src.data:
                subsets = subsets[::-1]
            from_, to = map(scope.part, (source, target), subsets)
            if from_.shape != to.shape:
                raise UserError(f"a copy of {list(from_.shape)} elements to {list(to.shape)} against one shape")
            loops, index = self._fresh(to.shape)
            leaf = Nest((*scope.loops, *loops), (self._read(from_, index),))
            self._write(self._label("copy"), leaf, to, index)

    def _tasklet(self, state: SDFGState, scope: Scope, node: Tasklet) -> None:
        edges = [edge for edge in state.out_edges(node) if not edge.data.is_empty()]
        if any(edge.data.data == _PYTHON for edge in edges):
            raise UserError(f"a call that DaCe leaves to Python ({node.label}) against what it can parse")
        if len(edges) != 1:
            raise UserError(f"an operation with {len(edges)} results against one")
        expression = assigned_expression(node, edges[0].src_conn)
        reads: list[Place] = []
        names: dict[str, str] = {}
        for edge in sorted(state.in_edges(node), key=lambda edge: edge.dst_conn or ""):
            if edge.data.is_empty():
                continue
            window = self._window(scope, edge.data.data)
            names[edge.dst_conn] = _LETTERS[len(reads) % len(_LETTERS)]
            reads.append(self._read(window, self._element(edge.data.subset, scope)))
        if len(reads) > len(_LETTERS):
            raise UserError(f"an operation of {len(reads)} operands against {len(_LETTERS)} at most")
        memlet = edges[0].data
        used = {name for name in names_in(expression) - set(names) if name in scope.symbols}
        names |= {name: f"({scope.text(name)})" for name in used}
        loops = frozenset(loop for name in used for loop in scope.symbols[name] if loop)
        source = with_names(expression, names)
        target = self._window(scope, memlet.data)
        if not reads:
            moving = tuple(loop for loop in scope.loops if loop.name in loops)
            values = evaluated(source, moving, target.container.dtype)
            reads, source, loops = [Place(self._emission.constant(values), along(moving) or ({},))], "a", frozenset()
        what = self._label(node.label.strip("_"))
        leaf = Nest(scope.loops, tuple(reads), (), source, loops, reduction_of(memlet.wcr))
        self._write(what, leaf, target, self._element(memlet.subset, scope))

    def _library(self, state: SDFGState, scope: Scope, node: CodeNode) -> None:
        operands: dict[str, Operand] = {}
        for edge in state.in_edges(node):
            part = scope.part(self._window(scope, edge.data.data), edge.data.subset, keeps_ones=True)
            self._accesses.read(part.container, part.indices)
            place = _value(part.container).at(part.indices)
            operands[edge.dst_conn or ""] = Operand(place, part.shape, part.container.dtype)
        (out,) = state.out_edges(node)
        target = scope.part(self._window(scope, out.data.data), out.data.subset, keeps_ones=True)
        what = self._label(node.name.strip("_"))
        declared = Declared(target.shape, target.container.dtype)
        found = library_call(self._emission, Call(node, what, operands, declared, scope.loops))
        loops, index = self._fresh(target.shape)
        self._write(what, Nest((*scope.loops, *loops), (found.at(index),)), target, index)

    # -- names, reads and writes

    def _label(self, name: str) -> str:
        """Return what an operation is called: by its line as well, if that is known."""
        return f"{name}_line{self._line}" if self._line else name

    def _read(self, window: Window, indices: Sequence[Affine]) -> Place:
        at = window.at(indices)
        self._accesses.read(window.container, at)
        return _value(window.container).at(at)

    def _write(self, what: str, leaf: Nest, window: Window, indices: Sequence[Affine]) -> None:
        at = window.at(indices)
        self._accesses.write(window.container, at)
        write(self._emission, what, leaf, window.container, at)

    def _window(self, scope: Scope, name: str) -> Window:
        if name not in scope.arrays:
            self._allocate(scope, name, scope.outer)
        return scope.arrays[name]

    def _allocate(self, scope: Scope, name: str, loops: tuple[Loop, ...]) -> None:
        descriptor = scope.sdfg.arrays[name]
        if isinstance(descriptor, dace.data.View):
            raise UserError(f"view {name!r} of nothing against a view of an array")
        if not isinstance(descriptor, dace.data.Scalar | dace.data.Array) or descriptor.dtype not in _NUMBERS:
            raise UserError(f"{name!r} holds {descriptor.dtype} against numbers of NumPy")
        shape = self._shape(descriptor, scope, name)
        scope.arrays[name] = Window.whole(Container(name, shape, np.dtype(descriptor.dtype.type).name, loops))

    def _shape(self, descriptor: dace.data.Data, scope: Scope, name: str) -> tuple[int, ...]:
        found = [scope.constant(extent) for extent in descriptor.shape]
        if any(extent is None for extent in found):
            text = ", ".join(map(str, descriptor.shape))
            raise UserError(f"array {name!r}: shape [{text}] depends on data or on a loop against constants")
        return tuple(extent for extent in found if extent is not None)

    def _element(self, subset: "dace.subsets.Subset", scope: Scope) -> tuple[Affine, ...]:
        indices = []
        for begin, end, _ in subset.ndrange():
            index = scope.affine(begin)
            if index is None or scope.affine(end) != index:
                raise UserError(f"index [{subset}] against single elements at affine functions of the loops")
            indices.append(index)
        return tuple(indices)

    def _fresh(self, shape: Sequence[int]) -> tuple[tuple[Loop, ...], tuple[Affine, ...]]:
        """Return new loops over a shape, and the index of each of its dimensions."""
        loops = [self._loop(extent) if extent > 1 else None for extent in shape]
        index: tuple[Affine, ...] = tuple({} if loop is None else {loop.name: 1} for loop in loops)
        return tuple(loop for loop in loops if loop is not None), index

    def _loop(self, extent: int, *, is_task: bool = False) -> Loop:
        self._loops += 1
        loop = Loop(f"loop{self._loops}", extent, is_task)
        self._accesses.loop(loop.name, extent)
        return loop

    def _move_to(self, debuginfo: "dace.dtypes.DebugInfo | None") -> None:
        if debuginfo is not None and debuginfo.filename and Path(debuginfo.filename).name == self._path.name:
            self._line = debuginfo.start_line


def _value(container: Container) -> Place:
    if container.value is None:
        raise UserError(f"{container.name!r} is read before it is written")
    return container.value


RETURNED = "__return"


def imported_program(name: str, program: ConcreteProgram) -> Program:
    """Return a program as one of level 0: one state, one array per value.

    Args:
        name: any text.
        program: that is taken apart.

    Raises:
        UserError: it has something that cannot be taken apart; the message has the user's line.
    """
    apply_dace_settings()
    sdfg = program.parsed()
    arguments = {port.name: port for port in program.arguments}
    emission = Emission([*arguments, *sdfg.arrays])
    walk = Walk(program.path, emission)
    scope = Scope(sdfg)
    containers = {}
    for port in program.arguments:
        shape = port.shape or (1,)
        emission.arrays[port.array] = Declared(shape, port.dtype)  # which nothing here writes
        containers[port.name] = Container(port.name, shape, port.dtype)
        scope.arrays[port.name] = window = Window.whole(containers[port.name])
        window.container.value = Place(port.array, window.indices)
    walk.run(sdfg, scope)
    for returned in sorted(array for array in scope.arrays if array.startswith(RETURNED)):
        containers[returned] = scope.arrays[returned].container
    outputs: list[Port] = []
    for written, container in containers.items():
        if container.is_written and container.value is not None:
            own = written.strip("_")
            array = emission.owned(f"store_{own}", container, {port.array for port in outputs})
            shape = arguments[written].shape if written in arguments else container.shape
            outputs.append(Port(own, array, shape, container.dtype))
    if not outputs:
        raise UserError(f"{program.path}: the program writes no argument and returns nothing")
    return _program(name, emission, program.arguments, tuple(outputs))


def _program(name: str, emission: Emission, arguments: Sequence[Port], outputs: tuple[Port, ...]) -> Program:
    """Return the steps that an output depends on as a program; arguments that they read are its inputs."""
    wanted = {port.array for port in outputs}
    live: list[Operator] = []
    for step in reversed(emission.steps):
        if not wanted.isdisjoint(step.results):
            wanted.update(step.operands)
            live.append(step)
    kept = live[::-1]
    border = {*(port.array for port in (*arguments, *outputs)), *emission.constants}
    graph = OperatorGraph(safe_identifier(name))
    used = {array for step in kept for array in (*step.operands, *step.results)}
    for array, declared in emission.arrays.items():
        if array in used:
            graph.array(array, declared.shape, declared.dtype, is_transient=array not in border)
    for step in kept:
        graph.add(step)
    inputs = (port for port in arguments if port.array in used)
    parameters = {array: value for array, value in emission.constants.items() if array in used}
    nodes = (ModelNode(step.origin, step.op_type, Coverage.COSTED) for step in kept)
    return graph.program(inputs, outputs, parameters, nodes)

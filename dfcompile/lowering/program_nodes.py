"""Reads the nodes of a program as expansions see them, in topological order."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.canonical_dag.analysis import lowest_order
from dfcompile.errors import InternalError, OperatorFieldError, UserError
from dfcompile.frontend import Program
from dfcompile.lowering.expansion import ExpansionTable
from dfcompile.lowering.nests.program import View
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators.base import CanonicalOperator, read_operator
from dfcompile.lowering.tensor import Tensor, declared_tensor
from dfcompile.plugins import missing
from dfcompile.records import once, replace

if TYPE_CHECKING:
    from dace.sdfg import nodes
    from dace.sdfg.state import SDFGState

    from dfcompile.frontend import OperatorNode


def onnx_operators(
    program: Program, note_view: Callable[[View], object] | None = None, constants: set[str] | None = None
) -> Iterator[Operator]:
    """Yield the operators of a program of level 0 in topological order; canonical ones as they are saved.

    Args:
        program: of level 0, or 1.
        note_view: called with each view on the way, after what it shows.
        constants: names of other arrays that depend on parameters alone, to which may be added on the way; what
            depends on these alone is added here.
    """
    for step in once(program, _steps):
        if isinstance(step, View):
            if note_view is not None:
                note_view(step if constants is None else _with_constants_shown(step, constants))
        elif constants:
            op = _with_constants(step, constants)
            yield op
            if op.inputs and all(operand.is_constant for operand in op.operands()):
                constants.update(result.name for result in op.results())
        else:
            yield step


def _with_constants(op: Operator, constants: set[str]) -> Operator:
    if constants.isdisjoint(tensor.name for tensor in op.operands()):
        return op
    told = (
        replace(tensor, is_constant=True) if tensor is not None and tensor.name in constants else tensor
        for tensor in op.inputs
    )
    return replace(op, inputs=tuple(told))


def _with_constants_shown(view: View, constants: set[str]) -> View:
    if view.source not in constants:
        return view
    constants.add(view.tensor.name)
    return replace(view, tensor=replace(view.tensor, is_constant=True))


def _steps(program: Program) -> tuple[Operator | View, ...]:
    """Return operators and views of a program in topological order."""
    from dace.data import View as DeclaredView  # takes half a second
    from dace.sdfg.nodes import AccessNode

    from dfcompile.frontend.sdfg.operator_node import OperatorNode

    sdfg, state = program.sdfg, program.sdfg.start_state
    arrays = sdfg.arrays
    known = {*program.parameters, *(port.array for port in program.inputs if port.is_constant)}
    steps: list[Operator | View] = []

    @cache
    def declared(name: str) -> Tensor:
        return declared_tensor(sdfg, name)

    def tensor(name: str) -> Tensor:
        found = declared(name)
        if name not in known:
            return found
        return Tensor(name, found.shape, found.dtype, program.parameters.get(name), is_constant=True)

    for node in in_order(state):
        if isinstance(node, OperatorNode):
            op = operator_of(state, node, tensor, declared)
            steps.append(op)
            if op.inputs and all(operand.is_constant for operand in op.operands()):
                known.update(result.name for result in op.results())
        elif isinstance(node, AccessNode) and isinstance(arrays[node.data], DeclaredView):
            source = next(edge.src.data for edge in state.in_edges(node) if edge.dst_conn == "views")
            if source in known:
                known.add(node.data)
            steps.append(View(tensor(node.data), source))
    return tuple(steps)


def canonical_nodes(
    program: Program, table: ExpansionTable, note_view: Callable[[View], object] | None = None
) -> Iterator[CanonicalNode[CanonicalOperator]]:
    """Yield the canonical operators of a program of level 1; see `onnx_operators`.

    Raises:
        UnsupportedOpError: no expansion is of such an operator.
        UserError: a node has an attribute that its operator has not, has not one that it needs, or has one with a wrong
            value; the message names both.
    """
    known = table.operators
    for op in onnx_operators(program, note_view):
        if op.op_type not in known:
            raise op.unsupported(f"no expansion for {op.op_type!r}{missing(op.op_type, known, table.faults)}")
        operator = read_operator(known[op.op_type], op.attributes, op.name)
        found = CanonicalNode(op.name, op.dialect, op.op_type, op.origin, op.inputs, op.outputs, operator)
        try:
            operator.check(found.operands(), found.results())
        except OperatorFieldError as error:
            raise UserError(f"node {op.name!r}: {error}") from error
        yield found


def in_order(state: "SDFGState") -> "Iterator[nodes.Node]":
    """Yield the nodes of a state in topological order, of independent ones the one first that was added first.

    Raises:
        InternalError: some wait for one another.
    """
    known = state.nodes()
    position = {node: number for number, node in enumerate(known)}
    ends = [(position[edge.src], position[edge.dst]) for edge in state.edges()]
    order = lowest_order(len(known), *np.array(ends, np.int64).reshape(-1, 2).T)
    if len(order) < len(known):
        raise InternalError(f"state {state.label!r}: a cycle against a topological order of its nodes")
    yield from (known[number] for number in order.tolist())


def operator_nodes(program: Program) -> "tuple[OperatorNode, ...]":
    """Return the nodes of a program that are operators, in no order that means anything."""
    from dfcompile.frontend.sdfg.operator_node import OperatorNode  # needs DaCe

    return tuple(node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))


def operator_of(
    state: "SDFGState", node: "OperatorNode", operand: Callable[[str], Tensor], result: Callable[[str], Tensor]
) -> Operator:
    """Return a node with its attributes and tensors, which are told by the names of arrays."""
    operands = _by_position({edge.dst_conn: operand(edge.data.data) for edge in state.in_edges(node)})
    results = _by_position({edge.src_conn: result(edge.data.data) for edge in state.out_edges(node)})
    attributes = MappingProxyType(node.attributes)
    return Operator(node.name, node.dialect, node.op_type, node.origin, operands, results, attributes)


def _by_position(tensors: Mapping[str, Tensor]) -> tuple[Tensor | None, ...]:
    placed = {int(connector.rpartition("_")[2]): tensor for connector, tensor in tensors.items()}
    return tuple(placed.get(position) for position in range(max(placed, default=-1) + 1))

"""Reads the nodes of a program as expansions see them, in topological order."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from dfcompile.errors import OperatorFieldError, UserError
from dfcompile.frontend import Program
from dfcompile.lowering.declared import declared_tensor
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators.base import CanonicalOperator, read_operator
from dfcompile.lowering.selection import ExpansionTable
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import missing

if TYPE_CHECKING:
    from dace.sdfg import nodes
    from dace.sdfg.state import SDFGState

    from dfcompile.frontend import OperatorNode


class ArrayTable(Protocol):
    """The arrays that expansions see: those of the next level."""

    def tensor(self, name: str) -> Tensor:
        """Return an array or a view."""

    def add_view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str) -> object:
        """Add a view of an array or of a view."""


def onnx_operators(program: Program, builder: ArrayTable | None = None) -> Iterator[Operator]:
    """Yield the operators of a program of level 0 in topological order; canonical ones as they are saved.

    Args:
        program: of level 0, or 1.
        builder: of the next level, whose arrays are those that expansions see; views on the way are made anew in it.
            Of its own, with the arrays of the program, if none is given.
    """
    from dace.data import View  # takes half a second
    from dace.sdfg.nodes import AccessNode

    from dfcompile.frontend.sdfg.operator_node import OperatorNode
    from dfcompile.lowering.program_builder import ProgramBuilder

    own = ProgramBuilder(program) if builder is None else None
    target = own or builder
    assert target is not None
    state = program.sdfg.start_state
    for node in in_order(state):
        if isinstance(node, OperatorNode):
            inputs = {edge.dst_conn: target.tensor(edge.data.data) for edge in state.in_edges(node)}
            outputs = {edge.src_conn: declared_tensor(program.sdfg, edge.data.data) for edge in state.out_edges(node)}
            op = operator_of(node, inputs, outputs)
            if own is not None:
                own.adopt_outputs(program.sdfg, op)
            yield op
        elif isinstance(node, AccessNode) and isinstance(node.desc(program.sdfg), View):
            source = next(edge.src.data for edge in state.in_edges(node) if edge.dst_conn == "views")
            view = declared_tensor(program.sdfg, node.data)
            target.add_view(target.tensor(source), node.data, view.shape, view.dtype)


def canonical_nodes(
    program: Program, table: ExpansionTable, builder: ArrayTable | None = None
) -> Iterator[CanonicalNode[CanonicalOperator]]:
    """Yield the canonical operators of a program of level 1; see `onnx_operators`.

    Raises:
        UnsupportedOpError: no expansion is of such an operator.
        UserError: a node has an attribute that its operator has not, has not one that it needs, or has one with a wrong
            value; the message names both.
    """
    known = table.operators
    for op in onnx_operators(program, builder):
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
    """Return the nodes of a state in topological order, of independent ones the one first that was added first."""
    import networkx as nx  # with DaCe, half a second

    position = {node: number for number, node in enumerate(state.nodes())}
    ordered: Iterator[nodes.Node] = nx.lexicographical_topological_sort(state.nx, key=position.__getitem__)
    return ordered


def operators_count(program: Program) -> int:
    """Return how many operators a program of level 0 or 1 has."""
    return len(operator_nodes(program))


def operator_nodes(program: Program) -> "tuple[OperatorNode, ...]":
    """Return the nodes of a program that are operators, in no order that means anything."""
    from dfcompile.frontend.sdfg.operator_node import OperatorNode  # needs DaCe

    return tuple(node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))


def operator_of(node: "OperatorNode", inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Operator:
    """Return a node with its attributes, and with tensors that are given by its connectors."""
    attributes = MappingProxyType(node.attributes)
    operands, results = _by_position(inputs), _by_position(outputs)
    return Operator(node.name, node.dialect, node.op_type, node.origin, operands, results, attributes)


def _by_position(tensors: Mapping[str, Tensor]) -> tuple[Tensor | None, ...]:
    placed = {int(connector.rpartition("_")[2]): tensor for connector, tensor in tensors.items()}
    return tuple(placed.get(position) for position in range(max(placed, default=-1) + 1))

"""The pass fuse-elementwise: chains of element-wise operators become one."""

from dataclasses import dataclass, replace

import dace
import numpy as np
from dace.sdfg.nodes import AccessNode
from dace.sdfg.state import SDFGState
from dace.sdfg.utils import dfs_topological_sort

from dfcompile.frontend import Level, OperatorNode, Program, input_connector
from dfcompile.lowering.expressions import MOST_OPERANDS, operand_names, substitute
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.operator_nodes import is_node_of, operator_node, operator_of
from dfcompile.lowering.operators import Elementwise

_LONGEST_EXPRESSION = 2000


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array and the result dimensions that its dimensions stand for."""

    array: AccessNode
    axes: tuple[int, ...]


@lowering_pass("fuse-elementwise", level=Level.CANONICAL, source="own")
def fuse_elementwise(program: Program) -> Program:
    """Join an element-wise operator with the only one that uses its result.

    ``t = f(a); y = g(t, b)`` becomes ``y = g(f(a), b)``, with the name of the last one. An array that is an output, in
    memory, or seen through a view stays.
    """
    consumers = [node for node in program.sdfg.start_state.nodes() if _is_elementwise(node)]
    if all(_producer(program.sdfg, node) is None for node in consumers):
        return program
    sdfg = dace.SDFG.from_json(program.sdfg.to_json())
    state = sdfg.start_state
    for node in list(dfs_topological_sort(state, state.source_nodes())):
        consumer = node
        while _is_elementwise(consumer) and (producer := _producer(sdfg, consumer)):
            consumer = _join(sdfg, producer, consumer)
    return replace(program, sdfg=sdfg)


def _producer(sdfg: dace.SDFG, consumer: OperatorNode) -> OperatorNode | None:
    """Return an element-wise operator whose result only the consumer uses, if they can be joined."""
    state = sdfg.start_state
    for operand in _operands(sdfg, consumer):
        readers = {edge.dst for edge in state.out_edges(operand.array)}
        writers = [edge.src for edge in state.in_edges(operand.array)]
        if readers == {consumer} and len(writers) == 1 and _is_elementwise(writers[0]):
            producer: OperatorNode = writers[0]
            if _can_join(sdfg, producer, operand.array, consumer):
                return producer
    return None


def _is_elementwise(node: dace.nodes.Node) -> bool:
    return is_node_of(node, Elementwise)


def _can_join(sdfg: dace.SDFG, producer: OperatorNode, array: AccessNode, consumer: OperatorNode) -> bool:
    state = sdfg.start_state
    between = array.desc(sdfg)
    if not between.transient or between.storage is not dace.StorageType.Default:
        return False
    result = state.out_edges(consumer)[0].dst.desc(sdfg)
    axes = {operand.axes for operand in _operands(sdfg, consumer) if operand.array is array}
    is_whole = tuple(between.shape) == tuple(result.shape) and axes == {tuple(range(len(result.shape)))}
    operands, expression = _joined(sdfg, producer, array, consumer)
    return is_whole and len(operands) <= MOST_OPERANDS and len(expression) <= _LONGEST_EXPRESSION


def _operands(sdfg: dace.SDFG, node: OperatorNode) -> list[_Operand]:
    """Return the operands of an element-wise operator in order."""
    state = sdfg.start_state
    rank = len(state.out_edges(node)[0].dst.desc(sdfg).shape)
    by_connector = {edge.dst_conn: edge.src for edge in state.in_edges(node)}
    arrays = [by_connector[input_connector(position)] for position in range(len(by_connector))]
    given = operator_of(node, Elementwise).axes
    last = [tuple(range(rank - len(array.desc(sdfg).shape), rank)) for array in arrays]
    return [_Operand(array, axes) for array, axes in zip(arrays, given or last, strict=True)]


def _joined(
    sdfg: dace.SDFG, producer: OperatorNode, array: AccessNode, consumer: OperatorNode
) -> tuple[list[_Operand], str]:
    """Return operands (each array once) and expression of the joined operator."""
    first, second = _operands(sdfg, producer), _operands(sdfg, consumer)
    joined = list(dict.fromkeys([*first, *(operand for operand in second if operand.array is not array)]))
    names = dict(zip(joined, (f"operand{position}" for position in range(len(joined))), strict=True))
    inner = substitute(
        operator_of(producer, Elementwise).expression,
        dict(zip(operand_names(len(first)), (names[operand] for operand in first), strict=True)),
    )
    inner = _as_stored(sdfg, inner, array, first)
    outer = substitute(
        operator_of(consumer, Elementwise).expression,
        {
            name: inner if operand.array is array else names[operand]
            for name, operand in zip(operand_names(len(second)), second, strict=True)
        },
    )
    short = operand_names(min(len(joined), MOST_OPERANDS))
    return joined, substitute(outer, dict(zip(names.values(), short, strict=False)))


def _as_stored(sdfg: dace.SDFG, expression: str, array: AccessNode, operands: list[_Operand]) -> str:
    """Keep what storing the intermediate result did to it: integers wrap around, truth values are 0 or 1."""
    dtypes = {np.dtype(node.desc(sdfg).dtype.type) for node in (array, *(operand.array for operand in operands))}
    stored = np.dtype(array.desc(sdfg).dtype.type)
    return expression if dtypes == {stored} and stored.kind == "f" else f"dace.{stored.name}({expression})"


def _join(sdfg: dace.SDFG, producer: OperatorNode, consumer: OperatorNode) -> OperatorNode:
    state = sdfg.start_state
    array = state.out_edges(producer)[0].dst
    operands, expression = _joined(sdfg, producer, array, consumer)
    result = state.out_edges(consumer)[0]
    inputs = [input_connector(position) for position in range(len(operands))]
    fused = Elementwise(expression, tuple(operand.axes for operand in operands))
    node = operator_node(fused, consumer.name, consumer.origin, inputs, [result.src_conn])
    state.add_node(node)
    for position, operand in enumerate(operands):
        _connect(sdfg, state, operand.array, node, input_connector(position))
    state.add_edge(node, result.src_conn, result.dst, None, result.data)
    for removed in (producer, consumer, array):
        state.remove_node(removed)
    sdfg.remove_data(array.data, validate=False)
    return node


def _connect(sdfg: dace.SDFG, state: SDFGState, array: AccessNode, node: OperatorNode, connector: str) -> None:
    state.add_edge(array, None, node, connector, dace.Memlet.from_array(array.data, sdfg.arrays[array.data]))

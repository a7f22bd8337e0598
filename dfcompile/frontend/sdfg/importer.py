"""The importer: a normalised draft becomes an SDFG of operator nodes in one state."""

import copy
from collections.abc import Mapping

import dace
import numpy as np
import onnx
from dace.sdfg.nodes import AccessNode
from onnx import AttributeProto

from dfcompile.errors import InternalError, UnsupportedOpError
from dfcompile.frontend.normaliser import Normalised
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.shapes import TensorType
from dfcompile.frontend.program import Level, Port, Program
from dfcompile.frontend.sdfg.dace_settings import apply_dace_settings
from dfcompile.frontend.sdfg.dialects import AttributeValue, input_connector, output_connector
from dfcompile.frontend.sdfg.element_copies import NodeCopies
from dfcompile.frontend.sdfg.identifiers import labels_of, safe_identifier, safe_identifiers
from dfcompile.frontend.sdfg.numbering import number_elements
from dfcompile.frontend.sdfg.scalar_types import scalar_type
from dfcompile.frontend.sdfg.whole_memlets import WholeMemlets
from dfcompile.host.stages import as_they_come


def import_program(name: str, normalised: Normalised, types: Mapping[str, TensorType]) -> Program:
    """Return the program of level 0: one state, one array per value, one access node per array.

    Inputs, outputs and parameters are not transient. A value without dimensions is an array of shape ``(1,)``. An
    operand that a node omits, a constant without elements, and a result that nobody uses has no connector; an operand
    that only tells a shape, an axis or the like is an input as any other, whose value stands in the program's
    parameters.

    Args:
        name: any text; the program gets an identifier near to it.
        normalised: all of whose values have a type.
        types: element type and static shape of every value.

    Raises:
        UnsupportedOpError: a node has an attribute that is no number, text or list of these.
    """
    apply_dace_settings()
    draft = normalised.draft
    arrays = safe_identifiers(_values(draft))
    sdfg = dace.SDFG(safe_identifier(name))
    border = {*draft.input_names, *draft.output_names, *draft.constants}
    like: dict[tuple[tuple[int, ...], str, bool], dace.data.Array] = {}  # a copy is made faster than a new one
    for value, array in arrays.items():
        kind = (array_shape(_shape(value, types)), types[value].dtype, value not in border)
        if kind not in like:
            like[kind] = dace.data.Array(scalar_type(kind[1]), kind[0], transient=kind[2])
        sdfg.add_datadesc(array, copy.copy(like[kind]))
    _add_nodes(sdfg, draft, arrays)
    return Program(
        name=sdfg.name,
        level=Level.ONNX,
        sdfg=sdfg,
        inputs=tuple(_port(value, arrays, types) for value in draft.input_names),
        outputs=tuple(_port(value, arrays, types) for value in draft.output_names),
        parameters={arrays[value]: _frozen(constant) for value, constant in draft.constants.items() if value in arrays},
        nodes=normalised.nodes,
    )


def array_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the array that holds a value: a scalar is an array of one element."""
    return shape or (1,)


def _values(draft: Draft) -> tuple[str, ...]:
    constants = [name for name, value in draft.constants.items() if value.size]
    used = _used(draft)
    produced = [name for node in draft.proto.graph.node for name in node.output if name in used]
    return tuple(dict.fromkeys([*draft.input_names, *constants, *produced]))


def _used(draft: Draft) -> frozenset[str]:
    """Return the values that a node reads or that are outputs; of the other results there is nothing to compute."""
    read = (name for node in draft.proto.graph.node for name in node.input if name)
    return frozenset([*read, *draft.output_names])


def _shape(value: str, types: Mapping[str, TensorType]) -> tuple[int, ...]:
    shape = types[value].known_shape
    if shape is None:
        raise InternalError(f"value {value!r}: no static shape after it was checked")
    return shape


def _add_nodes(sdfg: dace.SDFG, draft: Draft, arrays: Mapping[str, str]) -> None:
    state = sdfg.add_state("main")
    access: dict[str, AccessNode] = {}
    nodes, whole = NodeCopies(), WholeMemlets(sdfg)
    labels = labels_of(node.name for node in draft.proto.graph.node)
    for node in as_they_come(draft.proto.graph.node, len(draft.proto.graph.node)):
        operands = {input_connector(at): name for at, name in enumerate(node.input) if name in arrays}
        results = {output_connector(at): name for at, name in enumerate(node.output) if name in arrays}
        operator = nodes.operator(
            labels[node.name],
            op_type=node.op_type,
            origin=node.name,
            attributes=_attributes(node),
            inputs=tuple(operands),
            outputs=tuple(results),
        )
        state.add_node(operator)
        for name in dict.fromkeys([*operands.values(), *results.values()]):
            if name not in access:
                access[name] = nodes.access(arrays[name])
                state.add_node(access[name])
        for connector, name in operands.items():
            state.add_edge(access[name], None, operator, connector, whole.of(arrays[name]))
        for connector, name in results.items():
            state.add_edge(operator, connector, access[name], None, whole.of(arrays[name]))
    number_elements(sdfg)


def _attributes(node: onnx.NodeProto) -> Mapping[str, AttributeValue]:
    return {attribute.name: _attribute(attribute, node) for attribute in node.attribute}


def _attribute(attribute: AttributeProto, node: onnx.NodeProto) -> AttributeValue:
    kind = attribute.type
    if kind == AttributeProto.INT:
        return attribute.i
    if kind == AttributeProto.INTS:
        return list(attribute.ints)
    if kind == AttributeProto.FLOAT:
        return _shortest(attribute.f)
    if kind == AttributeProto.FLOATS:
        return [_shortest(value) for value in attribute.floats]
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", errors="replace")
    if kind == AttributeProto.STRINGS:
        return [value.decode("utf-8", errors="replace") for value in attribute.strings]
    found = AttributeProto.AttributeType.Name(kind).lower()
    raise UnsupportedOpError(
        f"node {node.name!r}: attribute {attribute.name!r} of {node.op_type} is a {found} "
        "against a number, a text or a list"
    )


def _shortest(value: float) -> float:
    """Return the float that reads shortest and is the same in single precision: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _port(value: str, arrays: Mapping[str, str], types: Mapping[str, TensorType]) -> Port:
    return Port(value, arrays[value], _shape(value, types), types[value].dtype)


def _frozen(constant: Constant) -> Constant:
    value = np.reshape(constant, array_shape(constant.shape)).view()
    value.flags.writeable = False
    return value

"""From an ONNX model in memory to a program: the list of the frontend's steps."""

import numpy as np
import onnx
from onnx import AttributeProto, helper

from dfcompile.errors import InternalError, UnsupportedOpError
from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.normaliser import Normalised, normalise
from dfcompile.frontend.normaliser.control_flow import without_control_flow
from dfcompile.frontend.normaliser.opset import opset_of, with_later_types, with_one_normalisation
from dfcompile.frontend.onnx.draft import Constants, read_only
from dfcompile.frontend.onnx.draft_reading import NO_WEIGHTS, input_names, read_draft
from dfcompile.frontend.onnx.origins import name_nodes
from dfcompile.frontend.onnx.shapes import Types
from dfcompile.frontend.program import KnownInput, Port, Program
from dfcompile.frontend.sdfg.identifiers import AttributeValue, labels_of, safe_identifier, safe_identifiers
from dfcompile.frontend.sdfg.operator_graph import Operator, OperatorGraph
from dfcompile.frontend.validation.structure import check_structure
from dfcompile.frontend.validation.typed_values import check_operands, checked_types
from dfcompile.host.stages import as_they_come, work_of
from dfcompile.records import replace


def program_of(name: str, model: onnx.ModelProto, options: ReadOptions, weights: Constants = NO_WEIGHTS) -> Program:
    """Return the program of level 0 of an ONNX model.

    Args:
        name: of the program, as far as it is an identifier.
        model: not changed.
        options: sizes and values of the inputs.
        weights: initializers that stand beside the model: those of its external data, and others.

    Raises:
        UserError: the model contradicts itself, or has something that cannot be compiled.
    """
    with work_of(4) as steps:
        opset_of(model)  # whether its operators can be read
        read = read_draft(model, options, weights)
        draft = with_one_normalisation(without_control_flow(read))
        steps.add()
        named = name_nodes(draft)
        check_structure(named, options.operators)
        named = with_later_types(named)
        # Before the passes as well: they would report a contradiction as their own.
        check_operands(named, model.graph.value_info)
        steps.add()
        normalised = normalise(named)
        steps.add()
        program = import_program(name, normalised, checked_types(normalised.draft))
        still_open = set(read.input_names)
        positions = [(at, value) for at, value in enumerate(input_names(model, weights)) if value not in still_open]
        known = tuple(KnownInput(at, name, read.constants[name]) for at, name in positions)
        return replace(program, known_inputs=known)


def import_program(name: str, normalised: Normalised, types: Types) -> Program:
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
    draft = normalised.draft
    nodes = draft.proto.graph.node
    constants = [value for value, constant in draft.constants.items() if constant.size]
    # Of the other results, which nothing reads, there is nothing to compute.
    used = {*draft.output_names, *(value for node in nodes for value in filter(None, node.input))}
    produced = [value for node in nodes for value in node.output if value in used]
    arrays = safe_identifiers([*draft.input_names, *constants, *produced])
    graph = OperatorGraph(safe_identifier(name))
    border = {*draft.input_names, *draft.output_names, *draft.constants}
    for value, array in arrays.items():
        graph.array(array, _shape(value, types) or (1,), types[value].dtype, is_transient=value not in border)
    labels = labels_of(node.name for node in nodes)
    for node in as_they_come(nodes, len(nodes)):
        attributes = {attribute.name: _attribute(attribute, node) for attribute in node.attribute}
        operands, results = ([arrays.get(name, "") for name in names] for names in (node.input, node.output))
        graph.add(Operator(labels[node.name], node.op_type, node.name, operands, results, attributes))
    held = {arrays[value]: constant for value, constant in draft.constants.items() if value in arrays}
    parameters = {array: read_only(value.reshape(value.shape or (1,)).view()) for array, value in held.items()}
    ends = (draft.input_names, draft.output_names)
    inputs, outputs = (
        [Port(value, arrays[value], _shape(value, types), types[value].dtype) for value in names] for names in ends
    )
    return graph.program(inputs, outputs, parameters, normalised.nodes)


def _shape(value: str, types: Types) -> tuple[int, ...]:
    shape = types[value].known_shape
    if shape is None:
        raise InternalError(f"value {value!r}: no static shape after it was checked")
    return shape


def _attribute(attribute: AttributeProto, node: onnx.NodeProto) -> AttributeValue:
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if kind not in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS"):
        found = f"attribute {attribute.name!r} of {node.op_type} is a {kind.lower()}"
        raise UnsupportedOpError(f"node {node.name!r}: {found} against a number, a text or a list")
    value = helper.get_attribute_value(attribute)
    return [_plain(item) for item in value] if kind.endswith("S") else _plain(value)


def _plain(value: float | bytes) -> float | str:
    """Return a number or a text of ONNX as one of Python; a float is the same in single precision, and reads shortest.

    So 9.999999747378752e-06 is 1e-05.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return float(str(np.float32(value))) if isinstance(value, float) else value

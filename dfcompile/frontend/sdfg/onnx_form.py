"""A program of level 0 as an ONNX file for viewers: operators as they are lowered, with origins, without weights."""

import json
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from dfcompile.frontend.program import Program
from dfcompile.frontend.sdfg.dialects import AttributeValue
from dfcompile.frontend.sdfg.operator_node import OperatorNode

ORIGIN_KEY = "origin"
OPERATOR_SET = 18  # at least what every model is converted to
FORM = 10  # of the file: viewers read it for years


def program_to_onnx(program: Program) -> bytes:
    """Return the operators of a program of level 0 as an ONNX model.

    It is there to be looked at: parameters are inputs without values, and types and shapes are written beside every
    array. The metadata ``origin`` of a node has the name by which reports call it.
    """
    nodes = list(_nodes(program))
    arrays = {name: _value(program, name) for name in sorted(program.sdfg.arrays)}
    given = [port.array for port in program.inputs] + sorted(program.parameters)
    results = [port.array for port in program.outputs]
    inner = [value for name, value in arrays.items() if name not in {*given, *results}]
    inputs, outputs = ([arrays[name] for name in dict.fromkeys(names)] for names in (given, results))
    graph = helper.make_graph(nodes, program.name, inputs, outputs, value_info=inner)
    domains = sorted({node.domain for node in nodes if node.domain})
    sets = [helper.make_opsetid("", OPERATOR_SET), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, producer_name="dfcompile", opset_imports=sets, ir_version=FORM)
    found: bytes = model.SerializeToString(deterministic=True)
    return found


def _nodes(program: Program) -> Iterator[onnx.NodeProto]:
    """Yield the operators, in the order in which they were added, which is one in which they can run."""
    state = program.sdfg.start_state
    for operator in state.nodes():
        if not isinstance(operator, OperatorNode):
            continue
        read = {edge.dst_conn: edge.data.data for edge in state.in_edges(operator)}
        written = {edge.src_conn: edge.data.data for edge in state.out_edges(operator)}
        domain, _, op_type = operator.op_type.rpartition(".")
        node = helper.make_node(op_type, _by_place(read), _by_place(written), name=operator.name, domain=domain)
        node.attribute.extend(helper.make_attribute(*pair) for pair in sorted(_plain(operator.attributes).items()))
        node.metadata_props.add(key=ORIGIN_KEY, value=operator.origin)
        yield node


def _by_place(names: Mapping[str, str]) -> list[str]:
    """Return names in the order of their connectors, ``in_0``, ``in_2``: one that is left out is empty."""
    by_place = {int(connector.rpartition("_")[2]): name for connector, name in names.items()}
    return [by_place.get(place, "") for place in range(max(by_place, default=-1) + 1)]


def _plain(attributes: Mapping[str, AttributeValue]) -> dict[str, object]:
    """Return attributes as ONNX has them: lists of lists become text, and an empty list has no type to be written."""
    found: dict[str, object] = {}
    for name, value in attributes.items():
        if isinstance(value, list) and any(isinstance(each, list) for each in value):
            found[name] = json.dumps(value)
        elif value != []:
            found[name] = value
    return found


def _value(program: Program, name: str) -> onnx.ValueInfoProto:
    array = program.sdfg.arrays[name]
    dtype = np.dtype(array.dtype.type)
    try:
        kind = helper.np_dtype_to_tensor_dtype(dtype)
    except (KeyError, ValueError):  # a type that ONNX does not have
        kind = TensorProto.UNDEFINED
    return helper.make_tensor_value_info(name, kind, [int(size) for size in array.shape])

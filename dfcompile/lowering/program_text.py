"""The text form of a program: its arrays, then its operators or map scopes in an order in which they can run."""

from collections.abc import Iterator

import dace
import numpy as np
from dace.frontend.operations import detect_reduction_type
from dace.sdfg.nodes import AccessNode, MapEntry, Tasklet
from dace.sdfg.state import SDFGState

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.frontend import OperatorNode, Program
from dfcompile.host.printable import printable
from dfcompile.lowering.program_nodes import in_order


def format_program(program: Program) -> str:
    """Return one line per port, array, operator and map scope."""
    return "\n".join(map(printable, _lines(program))) + "\n"


def _lines(program: Program) -> Iterator[str]:
    yield f"program {program.name} level={program.level.name.lower()}"
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        for port in ports:
            yield f"{kind} {port.name}: {port.dtype}{_shape(port.shape)} array={port.array}"
    for name in sorted(program.sdfg.arrays):
        yield f"array {name}: {_array(program, name)}"
    state = program.sdfg.start_state
    for node in in_order(state):
        if isinstance(node, OperatorNode):
            yield _operator(state, node)
        elif isinstance(node, AccessNode) and isinstance(node.desc(program.sdfg), dace.data.View):
            source = next(edge.src.data for edge in state.in_edges(node) if edge.dst_conn == "views")
            yield f"view {node.data} = {source}"
        elif isinstance(node, Tasklet):
            yield _scope(state, node)


def _array(program: Program, name: str) -> str:
    array = program.sdfg.arrays[name]
    dtype = np.dtype(array.dtype.type).name
    if name in program.parameters:
        role = " parameter"
    elif not array.transient:
        role = " border"
    else:
        role = " materialised" if array.storage is dace.StorageType.CPU_Heap else ""
    return f"{dtype}{_shape(array.shape)}{role}"


def _operator(state: SDFGState, node: OperatorNode) -> str:
    operands = ", ".join(f"{edge.dst_conn}={edge.data.data}" for edge in _sorted(state.in_edges(node), "dst_conn"))
    results = ", ".join(f"{edge.src_conn}={edge.data.data}" for edge in _sorted(state.out_edges(node), "src_conn"))
    attributes = "" if node.attributes_json == "{}" else f" {node.attributes_json}"
    return f"{node.dialect} {node.name}: {node.op_type}({operands}) -> {results}{attributes} origin={node.origin}"


def _scope(state: SDFGState, tasklet: Tasklet) -> str:
    entry = state.entry_node(tasklet)
    annotation = Annotation.of_location(tasklet.location, tasklet.label)
    loops = ""
    if isinstance(entry, MapEntry):
        pairs = zip(entry.map.params, entry.map.range, strict=True)
        named = ((f"{'*' * (name in annotation.spatial)}{name}", high) for name, (_, high, _) in pairs)
        loops = ", ".join(f"{name}<{high + 1}" for name, high in named)
    code = "; ".join(tasklet.code.as_string.splitlines())
    operands = (edge for edge in _sorted(state.in_edges(tasklet), "dst_conn") if edge.dst_conn is not None)
    reads = [f"{edge.dst_conn} = {edge.data.data}[{edge.data.subset}]" for edge in operands]
    results = _sorted(state.out_edges(tasklet), "src_conn")
    writes = [f"{at.data.data}[{at.data.subset}] {_reduction(at.data)}= {at.src_conn}" for at in results]
    role = " role=init" if annotation.is_initialisation else ""
    steps = "; ".join([*reads, code, *writes])
    return f"map {annotation.scope} ({loops}): {steps} origin={annotation.origin}{role}"


def _reduction(memlet: dace.Memlet) -> str:
    return detect_reduction_type(memlet.wcr).name.lower() if memlet.wcr else ""


def _sorted(edges: list[dace.sdfg.graph.MultiConnectorEdge], key: str) -> list[dace.sdfg.graph.MultiConnectorEdge]:
    return sorted(edges, key=lambda edge: getattr(edge, key) or "")


def _shape(shape: tuple[object, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"

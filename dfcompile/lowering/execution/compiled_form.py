"""What an SDFG becomes before it is compiled, apart from the canonical DAG, which does not see it.

A task that accumulates has a register for it; how wide that is changes neither what it reads nor what it writes. So the
lowered program says float32, or float16, for the results, and only the code that is compiled accumulates in double
precision and rounds once at the end.

The state of a large program is cut into several: many steps of DaCe are quadratic in the nodes of a state.

Real numbers of a byte, or less, for which DaCe has no type, get one in C++, with a table of the number that a code
stands for; a number is stored as the code next to it, of two that are as near as the even one. Codes with a sign have
it in the highest bit, and the numbers without it grow with the code.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from itertools import pairwise
from typing import Literal, TypeAlias, assert_never

import dace
import networkx as nx
import numpy as np
from dace.data import View
from dace.frontend.operations import detect_reduction_type
from dace.memlet import Memlet
from dace.sdfg.graph import MultiConnectorEdge
from dace.sdfg.nodes import AccessNode, MapEntry, MapExit, Node, Tasklet
from dace.sdfg.state import SDFGState

from dfcompile.errors import InternalError
from dfcompile.frontend import CODED_REALS, NARROW_REALS, PACKED_BITS, POWERS_OF_TWO, scalar_type
from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.nests.sdfg import add_map_scope

_BYTES = 256
# What a type has for no number: these are the codes of ml_dtypes. Four bits have no such code: it becomes a zero.
_NO_NUMBER = {
    "float4_e2m1fn": "(std::signbit(number) ? 0 : 8)",
    "float8_e4m3fnuz": "128",
    "float8_e5m2fnuz": "128",
    POWERS_OF_TWO: "255",
}
_STRUCT = """
namespace dace {{
struct {name} {{
    unsigned char code;
    constexpr {name}() : code(0) {{}}
    {name}(float number) : code(encoded(number)) {{}}
    operator float() const {{ return numbers()[code]; }}
    static const float *numbers() {{
        static const float found[] = {{{numbers}}};
        return found;
    }}
    static unsigned char encoded(float number) {{
        if (std::isnan(number){unsigned_only}) return {no_number};
        const float size = std::fabs(number), *first = numbers(), *end = first + {count};
        int code = int(std::upper_bound(first, end, size) - first) - 1;
        if (code == {last}) {{
            if (size {beyond} {limit}) return {overflow};
        }} else if (code < 0) {{
            code = 0;
        }} else {{
            const double middle = 0.5 * (double(first[code]) + double(first[code + 1]));
            if (size > middle || (size == middle && {rounds_up})) ++code;
        }}
        return (unsigned char)(std::signbit(number){signed} ? code + {sign} : code);
    }}
}};
}}
"""


def passed_type(dtype: str) -> dace.typeclass:
    """Return the type of the elements of an array that is handed to compiled code: bytes."""
    passed = copy(scalar_type(dtype))
    passed.type, passed.dtype = np.uint8, passed
    return passed


def definitions(sdfg: dace.SDFG) -> str:
    """Return C++ source that defines the types that DaCe lacks, of arrays and of casts between joined tasks."""
    held = {np.dtype(array.dtype.type).name for array in sdfg.arrays.values()}
    tasklets = [node.code.as_string for state in sdfg.states() for node in state.nodes() if isinstance(node, Tasklet)]
    used = (one for one in sorted(CODED_REALS) if one in held or any(f"dace.{one}" in code for code in tasklets))
    return "".join(map(_definition, used))


def _definition(dtype: str) -> str:
    bits = PACKED_BITS.get(dtype, 8)
    numbers = (np.arange(_BYTES) % 2**bits).astype(np.uint8).view(dtype).astype(np.float32)
    is_power = dtype == POWERS_OF_TWO
    count = 2**bits - 1 if is_power else 2 ** (bits - 1)  # codes of numbers that are not negative
    largest, before = float(numbers[count - 1]), float(numbers[count - 2])
    no_number = _NO_NUMBER[dtype]
    last = count - 1
    return _STRUCT.format(
        name=dtype,
        numbers=", ".join("NAN" if np.isnan(number) else f"{float(number).hex()}f" for number in numbers),
        no_number=no_number,
        unsigned_only=" || number <= 0" if is_power else "",
        count=count,
        last=last,
        # Half-way from the largest number to the next one, were there one, goes to the even code.
        beyond=">" if last % 2 == 0 else ">=",
        limit=f"{largest + (largest if is_power else largest - before) / 2:.1f}",
        overflow=f"(std::signbit(number) ? {last + 2 ** (bits - 1)} : {last})" if bits < 8 else no_number,
        rounds_up="true" if is_power else "code % 2",
        signed="" if dtype.endswith("fn") else " && code" if not is_power else " && false",
        sign=2 ** (bits - 1),
    )


_WIDE = dict.fromkeys(("bfloat16", "float16", "float32", "float64"), "float64") | {"complex64": "complex128"}
Extremum: TypeAlias = Literal[Reduction.MAX, Reduction.MIN]

# How a number is compared that takes the place of another, and what stands for "nothing was seen yet".
_COMPARED: Mapping[Extremum, tuple[str, str]] = {
    Reduction.MAX: (">", repr(-sys.float_info.max)),
    Reduction.MIN: ("<", repr(sys.float_info.max)),
}


def widen_accumulators(sdfg: dace.SDFG) -> None:
    """Let every map scope that accumulates floating-point numbers do so in an array of double precision, in place.

    ``init -> y; scope -> y`` becomes ``init -> wide; scope -> wide; cast -> y``. Scopes run one after another and so do
    their iterations: results do not depend on the number of threads.

    The largest and the smallest of some numbers are those of the comparisons that onnxruntime makes: it starts with
    the first number, and takes another one if that is larger; so a NaN counts if it comes first.

    Args:
        sdfg: of level 2; no longer fit for extraction afterwards.
    """
    for state in sdfg.states():
        for exit_ in [node for node in state.nodes() if isinstance(node, MapExit)]:
            _widen(sdfg, state, exit_)
        for node in state.nodes():
            if isinstance(node, MapEntry):
                node.map.schedule = dace.ScheduleType.Sequential


def _widen(sdfg: dace.SDFG, state: SDFGState, exit_: MapExit) -> None:
    (inner,) = state.in_edges(exit_)
    if inner.data.wcr is None or inner.data.subset.num_elements() > 1:
        return  # at places that depend on data, the elements themselves are combined, one after another, in memory
    name, reduction = inner.data.data, Reduction[detect_reduction_type(inner.data.wcr).name.upper()]
    dtype = np.dtype(sdfg.arrays[name].dtype.type).name
    if dtype not in _WIDE or (dtype == _WIDE[dtype] and _extremum(reduction) is None):
        return
    shape = sdfg.arrays[name].shape
    wide, _ = sdfg.add_transient(f"{name}_wide", shape, scalar_type(_WIDE[dtype]), find_new_name=True)
    (outer,) = state.out_edges(exit_)
    result = outer.dst
    _rename_written(state, _initialised(state, state.entry_node(exit_), name), wide, _extremum(reduction))
    sums = state.add_access(wide)
    state.remove_edge(outer)
    state.add_edge(exit_, outer.src_conn, sums, None, _renamed(outer.data, wide, reduction))
    inner.data = _renamed(inner.data, wide, reduction)
    loops = {f"i{axis}": int(extent) for axis, extent in enumerate(shape)}
    subset = ", ".join(loops)
    code = "rounded = dace.float32(value)" if dtype in NARROW_REALS else "rounded = value"
    reads, write = {"value": (sums, Memlet(f"{wide}[{subset}]"))}, (result, Memlet(f"{name}[{subset}]"))
    add_map_scope(state, f"{name}_round", loops, reads, code, "rounded", write)


def _initialised(state: SDFGState, entry: MapEntry, name: str) -> AccessNode:
    """Return the access node that holds the neutral elements which the scope starts from."""
    for edge in state.in_edges(entry):
        if edge.data.is_empty() and isinstance(edge.src, AccessNode) and edge.src.data == name:
            return edge.src
    raise InternalError(f"scope {entry.label!r}: accumulates into {name!r}, which nothing sets before")


def _rename_written(state: SDFGState, node: AccessNode, name: str, extremum: Extremum | None) -> None:
    """Let a scope that sets an array set another one; where an extremum is sought, to what no number is."""
    node.data = name
    (outer,) = state.in_edges(node)
    (inner,) = state.in_edges(outer.src)
    outer.data, inner.data = (_renamed(edge.data, name, None) for edge in (outer, inner))
    if extremum is not None:
        (variable,) = inner.src.out_connectors
        inner.src.code.as_string = f"{variable} = {_COMPARED[extremum][1]}"


def _extremum(reduction: Reduction) -> Extremum | None:
    """Return the reduction if it keeps one of its operands."""
    match reduction:
        case Reduction.MAX | Reduction.MIN:
            return reduction
        case Reduction.SUM | Reduction.PRODUCT:
            return None
    assert_never(reduction)


def _renamed(memlet: Memlet, name: str, reduction: Reduction | None) -> Memlet:
    rule = None if reduction is None else reduction.value
    extremum = None if reduction is None else _extremum(reduction)
    if extremum is not None:
        sign, unseen = _COMPARED[extremum]
        rule = f"lambda a, b: b if ((b {sign} a) or (a == {unseen})) else a"
    return Memlet(data=name, subset=memlet.subset, wcr=rule)


UNITS = 64  # of a state

Edge: TypeAlias = MultiConnectorEdge[Memlet]


def cut_state(sdfg: dace.SDFG, units: int) -> None:
    """Put what a program of one state computes into several states, one after another, in place.

    A unit is a map scope with all that is inside, another node outside of scopes that computes, or a copy from array
    to array. They come in a topological order, so many to a state; an array stands in each state that uses it, a view
    with what it shows. A program stays as it is if it has several states already, or units that no array stands
    between, or writes through a view.

    Args:
        sdfg: the program.
        units: of a state, at most.
    """
    blocks = sdfg.nodes()
    if len(blocks) != 1 or not isinstance(blocks[0], SDFGState):
        return
    whole = blocks[0]
    # the unit of each node but arrays outside of scopes, by its first node
    scope = whole.scope_dict()
    unit_of: dict[Node, Node] = {}
    for node in whole.nodes():
        outermost = node
        while scope[outermost] is not None:
            outermost = scope[outermost]
        if outermost is not node or not isinstance(node, AccessNode):
            unit_of[node] = outermost
    views = [node for node in whole.data_nodes() if isinstance(node.desc(sdfg), View)]
    shown = {edge.dst: edge for view in views for edge in whole.in_edges(view) if edge.dst_conn == "views"}
    if any(view not in shown or view in unit_of or whole.in_degree(view) > 1 for view in views):
        return
    parts = _parts(whole, unit_of, shown, units)
    if len(parts) < 2:
        return
    states = [sdfg.add_state(f"{whole.label}_{number}") for number in range(len(parts))]
    for state, edges in zip(states, parts, strict=True):
        _fill(state, edges, unit_of, shown)
    sdfg.remove_node(whole)
    for before, after in pairwise(states):
        sdfg.add_edge(before, after, dace.InterstateEdge())
    sdfg.start_block = 0


def _parts(
    state: SDFGState, unit_of: Mapping[Node, Node], shown: Mapping[AccessNode, Edge], units: int
) -> list[list[Edge]]:
    """Return the edges of each part but those from arrays to their views; none if units hang together."""
    number: dict[Node | Edge, int] = {}
    for node in nx.topological_sort(state.nx):
        if unit_of.get(node) is node:
            number[node] = len(number)
        elif node not in unit_of and node not in shown:
            for edge in state.in_edges(node):
                if edge.src not in unit_of:
                    number[edge] = len(number)
    parts: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in state.edges():
        ends = {number[unit_of[node]] for node in (edge.src, edge.dst) if node in unit_of}
        if len(ends) > 1:
            return []
        if edge in number or ends:
            parts[(ends.pop() if ends else number[edge]) // units].append(edge)
    return [parts[part] for part in sorted(parts)]


def _fill(
    state: SDFGState, edges: Sequence[Edge], unit_of: Mapping[Node, Node], shown: Mapping[AccessNode, Edge]
) -> None:
    """Put edges with their nodes into an empty state: those of units as they are, of arrays copies."""
    copies: dict[Node, Node] = {}

    def own(node: Node) -> Node:
        if node in unit_of:
            return node
        if node not in copies:
            copies[node] = deepcopy(node)
            if node in shown:
                add(shown[node])
        return copies[node]

    def add(edge: Edge) -> None:
        state.add_edge(own(edge.src), edge.src_conn, own(edge.dst), edge.dst_conn, deepcopy(edge.data))

    for edge in edges:
        add(edge)

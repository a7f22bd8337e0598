"""An SDFG of operator nodes in one state, as it grows: one array per value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import count
from math import prod
from typing import TypeAlias, TypeVar

import dace
from dace.config import Config
from dace.data import Array, Data
from dace.memlet import Memlet
from dace.sdfg.nodes import AccessNode, EntryNode, ExitNode, Node
from dace.sdfg.state import SDFGState
from dace.subsets import Range
from msgspec import Struct
from sympy import Integer

from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.program import Level, ModelNode, Port, Program
from dfcompile.frontend.sdfg.identifiers import (
    ONNX,
    AttributeValue,
    attributes_text,
    input_connector,
    output_connector,
)
from dfcompile.frontend.sdfg.operator_node import OperatorNode, scalar_type
from dfcompile.host.dace_guard import NOWHERE


def apply_dace_settings() -> None:
    """Set DaCe's process-wide configuration; doing it again changes nothing.

    No source lines, no transformation history, no files in the current folder.
    Source lines of nodes cost a walk over the call stack for each node, the history a copy of the SDFG for each
    transformation, and DaCe's own build folder is in the current one, where anybody may have put something (it is
    set here once more for those who had imported DaCe before).
    """
    Config.set("compiler", "lineinfo", value="none")
    Config.set("store_history", value=False)
    Config.set("default_build_folder", value=NOWHERE)


class Operator(Struct, frozen=True):
    """An operator of level 0.

    Attributes:
        label: unique.
        op_type: such as ``Conv``.
        origin: name of the user's operator.
        operands: arrays by position; one that is omitted is empty.
        results: the same.
        attributes: by name.
        dialect: ``onnx``, or ``canonical`` on level 1.
    """

    label: str
    op_type: str
    origin: str
    operands: Sequence[str]
    results: Sequence[str]
    attributes: Mapping[str, AttributeValue]
    dialect: str = ONNX


_MEMLET, _ACCESS, _OPERATOR = Memlet(), AccessNode("x"), OperatorNode()
_UNTYPED = dace.typeclass(None)  # of a connector, whose type is its array's
_NUMBERS = count(1)

Element = TypeVar("Element")


def _new(known: Element, **fields: object) -> Element:
    """Return an element of an SDFG that is as another one, but for some fields: DaCe takes ten times as long."""
    found: Element = object.__new__(type(known))
    held = vars(found)
    held.update(vars(known))
    held.update(fields)
    if "_guid" in held:
        # Of its form, and of no other element, until all are numbered: drawing one takes as long as all the rest.
        held["_guid"] = f"00000000-0000-0000-0000-{next(_NUMBERS):012x}"
    return found


def new_memlet(array: str, subset: Range, volume: int) -> Memlet:
    """Return a new memlet."""
    return _new(_MEMLET, _data=array, _subset=subset, _volume=Integer(volume))


def whole_memlet(state: SDFGState, array: str) -> Memlet:
    """Return a new memlet of all of an array."""
    declared = state.sdfg.arrays[array]
    known = _whole(tuple(declared.shape), tuple(declared.offset))
    # What can be changed is of each memlet alone.
    subset = _new(known, ranges=known.ranges.copy(), tile_sizes=known.tile_sizes.copy())
    return new_memlet(array, subset, prod(declared.shape))


@lru_cache(4096)
def _whole(shape: tuple[int, ...], offset: tuple[int, ...]) -> Range:
    return Range([(-before, size - 1 - before, 1) for before, size in zip(offset, shape, strict=True)])


def _new_access(array: str) -> AccessNode:
    return _new(_ACCESS, _data=array, _in_connectors={}, _out_connectors={})


@lru_cache(4096)  # a copy takes a fifth of the time of a new one
def _array(shape: tuple[int, ...], dtype: str, is_transient: bool) -> Array:  # noqa: FBT001  # a key
    return Array(scalar_type(dtype), shape, transient=is_transient)


def add_array(sdfg: dace.SDFG, name: str, shape: Iterable[int], dtype: str, *, is_transient: bool) -> Array:
    """Add an array to an SDFG, and return it."""
    array = copy(_array(tuple(shape), dtype, is_transient))
    array.location = {}  # which can be changed
    put_array(sdfg, name, array)
    return array


def put_array(sdfg: dace.SDFG, name: str, array: Data) -> None:
    """Add an array under a name that nothing has; no sizes are symbols, which DaCe would look for."""
    sdfg.arrays[name] = array


def add_operator(state: SDFGState, operator: Operator, access: Callable[[str], AccessNode]) -> OperatorNode:
    """Add an operator between arrays to a state, and return its node.

    Args:
        state: to add it to.
        operator: the operator.
        access: gives the access node of an array.
    """
    read = {input_connector(at): array for at, array in enumerate(operator.operands) if array}
    written = {output_connector(at): array for at, array in enumerate(operator.results) if array}
    node = _new(
        _OPERATOR,
        _name=operator.label,
        _label=operator.label,
        _dialect=operator.dialect,
        _op_type=operator.op_type,
        _origin=operator.origin,
        _attributes_json=attributes_text(operator.attributes),
        _in_connectors=dict.fromkeys(read, _UNTYPED),
        _out_connectors=dict.fromkeys(written, _UNTYPED),
        _location={},
    )
    state.add_node(node)
    for connector, array in read.items():
        _add_edge(state, (access(array), None), (node, connector), whole_memlet(state, array))
    for connector, array in written.items():
        _add_edge(state, (node, connector), (access(array), None), whole_memlet(state, array))
    return node


End: TypeAlias = tuple[Node, str | None]  # a node and its connector


def _add_edge(state: SDFGState, source: End, target: End, memlet: Memlet) -> None:
    """Join an access node and an operator, as `SDFGState.add_edge` does, which looks for more than one edge's path."""
    edge = super(SDFGState, state).add_edge(*source, *target, memlet)
    vars(memlet).update(_sdfg=state.sdfg, _state=state, _edge=edge, _is_data_src=isinstance(source[0], AccessNode))


def number_elements(sdfg: dace.SDFG) -> None:
    """Replace the random identifiers that DaCe gives to elements of an SDFG of one state."""
    state = sdfg.start_state
    sdfg.guid, state.guid = "sdfg", "state"
    for number, node in enumerate(state.nodes()):
        vars(node)["_guid"] = f"node-{number}"
        if isinstance(node, (EntryNode, ExitNode)):
            node.map.guid = f"map-{number}"
    for number, edge in enumerate(state.edges()):
        vars(edge.data)["_guid"] = f"edge-{number}"


class OperatorGraph:
    """Arrays and operators so far.

    Every array has a *current* access node: the one that holds what has been written so far.
    """

    def __init__(self, name: str) -> None:
        """Begin.

        Args:
            name: an identifier.
        """
        apply_dace_settings()
        self.sdfg = dace.SDFG(name)
        self.state: SDFGState = self.sdfg.add_state("main", is_start_block=True)
        self._current: dict[str, AccessNode] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: str, *, is_transient: bool) -> None:
        """Add an array."""
        add_array(self.sdfg, name, shape, dtype, is_transient=is_transient)

    def add(self, operator: Operator) -> None:
        """Add an operator behind what writes its operands."""
        add_operator(self.state, operator, self.access)

    def access(self, name: str) -> AccessNode:
        """Return the access node to read an array from, or to write (a part of) it to."""
        return self._current[name] if name in self._current else self.new_access(name)

    def new_access(self, name: str) -> AccessNode:
        """Return a new access node of an array, which becomes its current one."""
        self._current[name] = _new_access(name)
        self.state.add_node(self._current[name])
        return self._current[name]

    def program(
        self, inputs: Iterable[Port], outputs: Iterable[Port], parameters: Constants, nodes: Iterable[ModelNode]
    ) -> Program:
        """Return the program of level 0; elements of the SDFG are numbered."""
        number_elements(self.sdfg)
        return Program(self.sdfg.name, Level.ONNX, self.sdfg, tuple(inputs), tuple(outputs), parameters, tuple(nodes))

"""Elements of an SDFG made quickly: DaCe takes eight times as long for a new node as for a copy.

Of a new one it sets and checks every property, most of them to a default value, once for each class that the
element's class is made of.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Generic, TypeVar

import dace
from dace.data import Array, Data
from dace.memlet import Memlet
from dace.properties import CodeBlock
from dace.sdfg.graph import generate_element_id
from dace.sdfg.nodes import AccessNode, EntryNode, ExitNode
from dace.subsets import Range

from dfcompile.frontend.sdfg.identifiers import AttributeValue, attributes_text
from dfcompile.frontend.sdfg.operator_node import OperatorNode, scalar_type

ElementT = TypeVar("ElementT")

_UNTYPED = dace.typeclass(None)
_KEPT = 4096  # prototypes of memlets, and of arrays: some MB each


# What is not here cannot be changed in place: texts, numbers, members of enums, frozen sets, SymPy's expressions.
# A CodeBlock's own code is replaced as a whole.
_OWN: Mapping[type, Callable[..., object]] = {dict: dict, list: list, CodeBlock: CodeBlock, Range: deepcopy}


class Prototype(Generic[ElementT]):
    """A node, a map, a memlet or an array in no graph, of which many copies are made.

    DaCe keeps a property in an attribute of the same name behind an underscore. Its check on assignment is most of the
    time that an element takes; a copy leaves it out. A copy cannot change its prototype, so that lasts for ever.
    """

    def __init__(self, element: ElementT) -> None:
        self._type = type(element)
        self._shared = dict(vars(element))
        self._own = [(name, _OWN[type(value)], value) for name, value in self._shared.items() if type(value) in _OWN]
        self._has_identifier = "_guid" in self._shared

    def copy(self, **properties: object) -> ElementT:
        """Return an element like this one, with an identifier of its own.

        Args:
            properties: name -> value of the very type that DaCe keeps; belongs to the element from now on.
        """
        element = object.__new__(self._type)
        attributes = vars(element)
        attributes.update(self._shared)
        for name, own, value in self._own:
            attributes[name] = own(value)
        for name, value in properties.items():
            attributes[f"_{name}"] = value
        if self._has_identifier:
            attributes["_guid"] = generate_element_id(element)
        return element


def untyped_connectors(names: Iterable[str]) -> dict[str, dace.typeclass]:
    """Return connectors whose element type DaCe finds out."""
    return dict.fromkeys(names, _UNTYPED)


_ACCESS = Prototype(AccessNode("array"))
_OPERATOR = Prototype(OperatorNode())


class NodeCopies:
    """Makes access nodes and operator nodes; those of one kind are copies of one."""

    def access(self, array: str) -> AccessNode:
        """Return a new access node of an array."""
        return _ACCESS.copy(data=array)

    def operator(
        self,
        name: str,
        *,
        attributes: Mapping[str, AttributeValue],
        inputs: Sequence[str],
        outputs: Sequence[str],
        **words: str,
    ) -> OperatorNode:
        """Return a new operator node; the arguments are those of `OperatorNode`."""
        ends = {"in_connectors": untyped_connectors(inputs), "out_connectors": untyped_connectors(outputs)}
        return _OPERATOR.copy(name=name, label=name, attributes_json=attributes_text(attributes), **ends, **words)


class WholeMemlets:
    """Makes memlets of whole arrays of one SDFG, and of single elements; those of one shape are copies of one."""

    def __init__(self, sdfg: dace.SDFG) -> None:
        self._sdfg = sdfg

    def of(self, name: str) -> Memlet:
        """Return a new memlet of all of an array."""
        array: Data = self._sdfg.arrays[name]
        return _whole(tuple(array.shape), tuple(getattr(array, "offset", ()))).copy(data=name)

    def element(self, name: str, indices: str) -> Memlet:
        """Return a new memlet of one element of an array, such as ``i, 2*j``."""
        return _element(indices).copy(data=name)


@lru_cache(_KEPT)
def _whole(shape: tuple[object, ...], offset: tuple[object, ...]) -> Prototype[Memlet]:
    return Prototype(Memlet.from_array("array", Array(dace.float32, shape, offset=offset or None)))


@lru_cache(_KEPT)
def _element(indices: str) -> Prototype[Memlet]:
    return Prototype(Memlet(data="array", subset=indices, volume=1))


def number_elements(sdfg: dace.SDFG) -> None:
    """Replace the random identifiers that DaCe gives to elements of an SDFG of one state."""
    state = sdfg.start_state
    sdfg.guid, state.guid = "sdfg", "state"
    for number, node in enumerate(state.nodes()):
        node.guid = f"node-{number}"
        if isinstance(node, (EntryNode, ExitNode)):
            node.map.guid = f"map-{number}"
    for number, edge in enumerate(state.edges()):
        edge.data.guid = f"edge-{number}"


def array_copy(shape: tuple[int, ...], dtype: str, *, is_transient: bool, is_materialised: bool = False) -> Array:
    """Return a new array of a shape and an element type; it lives in memory if it is materialised."""
    return _array(shape, dtype, is_transient, is_materialised).copy()


@lru_cache(_KEPT)
def _array(shape: tuple[int, ...], dtype: str, transient: bool, materialised: bool) -> Prototype[Array]:  # noqa: FBT001
    storage = dace.StorageType.CPU_Heap if materialised else dace.StorageType.Default
    return Prototype(Array(scalar_type(dtype), shape, transient=transient, storage=storage))

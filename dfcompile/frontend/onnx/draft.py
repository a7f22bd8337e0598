"""The draft: an ONNX graph and, apart from it, its constants; what the normaliser's passes turn into another one.

What attributes of its nodes say, the graphs that they hold, copies of them, and names that nothing else has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from msgspec import Struct
from onnx import AttributeProto, helper, numpy_helper

OWN_DOMAINS = frozenset(["", "ai.onnx"])
AttributeValue: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]
Constant: TypeAlias = npt.NDArray[np.generic]
Constants: TypeAlias = Mapping[str, Constant]  # by name


def read_only(value: Constant) -> Constant:
    """Return an array that can no longer be written to."""
    value.flags.writeable = False
    return value


class Draft(Struct, frozen=True, dict=True):
    """A model between reading and importing.

    The constants stand apart because copying and inferring shapes over megabytes of weights is most of the time that
    ONNX tools take.

    Attributes:
        proto: the model; its graph has no initializers and no inner value infos. Never mutated: a pass makes a copy.
        constants: values of the initializers by name, read-only.
    """

    proto: onnx.ModelProto
    constants: Constants

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the model's inputs."""
        return tuple(value.name for value in self.proto.graph.input)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return tuple(value.name for value in self.proto.graph.output)

    def names(self) -> tuple[set[str], set[str]]:
        """Return the names of the nodes, and of what they read and give."""
        nodes = self.proto.graph.node
        return {node.name for node in nodes}, value_names(nodes)

    def inner_names(self) -> set[str]:
        """Return the names of constants and values, also of those in graphs that nodes hold."""
        names = {*self.constants, *value_names(nodes_of(self.proto))}
        for graph in graphs_of(self.proto):
            names.update(value.name for value in (*graph.input, *graph.output))
            names.update(tensor.name for tensor in graph.initializer)
        return names

    def replaced(self, nodes: Iterable[onnx.NodeProto], constants: Constants | None = None) -> "Draft":
        """Return the draft with other nodes, and other constants if given."""
        # The list is built first: the nodes may come out of this very graph.
        kept = list(nodes)
        proto = self.shell()
        proto.graph.node.extend(kept)
        return Draft(proto, self.constants if constants is None else constants)

    def shell(self) -> onnx.ModelProto:
        """Return a copy of the model with inputs and outputs, but no nodes."""
        proto = onnx.ModelProto(ir_version=self.proto.ir_version)
        proto.opset_import.extend(self.proto.opset_import)
        proto.graph.name = self.proto.graph.name
        proto.graph.input.extend(self.proto.graph.input)
        proto.graph.output.extend(self.proto.graph.output)
        return proto


def attribute_value(entry: AttributeProto) -> AttributeValue:
    """Return an attribute that is a number, a text or a list of numbers; an empty text of any other."""
    if entry.type == AttributeProto.INT:
        return entry.i
    if entry.type == AttributeProto.FLOAT:
        return entry.f
    if entry.type == AttributeProto.INTS:
        return tuple(entry.ints)
    if entry.type == AttributeProto.FLOATS:
        return tuple(entry.floats)
    return entry.s.decode("utf-8", errors="replace")


def integer(node: onnx.NodeProto, name: str, default: int = 0) -> int:
    """Return an attribute that is an integer."""
    return next((entry.i for entry in node.attribute if entry.name == name), default)


def integers(node: onnx.NodeProto, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers, None if it is absent."""
    return next((tuple(entry.ints) for entry in node.attribute if entry.name == name), None)


def text(node: onnx.NodeProto, name: str, default: str = "") -> str:
    """Return an attribute that is a text."""
    return next((entry.s.decode("utf-8", errors="replace") for entry in node.attribute if entry.name == name), default)


def copied(
    node: onnx.NodeProto,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    name: str | None = None,
) -> onnx.NodeProto:
    """Return a copy of a node with other operands, results or another name, if these are given."""
    copy = deepcopy(node)
    if inputs is not None:
        copy.input[:] = inputs
    if outputs is not None:
        copy.output[:] = outputs
    if name is not None:
        copy.name = name
    return copy


def constant_node(result: str, value: Constant) -> onnx.NodeProto:
    """Return a node that gives a constant."""
    return helper.make_node("Constant", [], [result], value=numpy_helper.from_array(value, result))


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return a copy of a node with other names for some of the values that it reads or gives."""
    return copied(node, [names.get(name, name) for name in node.input], [names.get(name, name) for name in node.output])


def with_nodes(
    model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], initializers: Iterable[onnx.TensorProto] = ()
) -> onnx.ModelProto:
    """Return a copy of a model with other nodes, and some initializers more."""
    kept = list(nodes)  # they may come out of this very model
    copy = deepcopy(model)
    del copy.graph.node[:]
    copy.graph.node.extend(kept)
    copy.graph.initializer.extend(initializers)
    return copy


def value_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the names of what nodes read and give."""
    return {name for node in nodes for name in (*node.input, *node.output)}


def needed_for(wanted: Iterable[str], nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Return values and all those that they depend on, by nodes in the order in which they run."""
    needed = set(wanted)
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
    return needed


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds as attributes."""
    for entry in node.attribute:
        if entry.HasField("g"):
            yield entry.g
        yield from entry.graphs


def with_inner_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of the graphs that they hold; protobuf itself limits how deep these are nested."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from with_inner_nodes(graph.node)


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a model, of its functions, and of the graphs that these nodes hold."""
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        yield from with_inner_nodes(nodes)


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph of a model and those that its nodes hold, or nodes of its functions."""
    yield model.graph
    for node in nodes_of(model):
        yield from subgraphs(node)

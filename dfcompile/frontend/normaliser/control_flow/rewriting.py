"""Rewriting: plain nodes in the order in which they run, graphs within nodes put in the place of these.

What a model's constants and static shapes say of values decides, node by node.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import onnx
from msgspec import Struct
from onnx import helper

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend.normaliser.constant_folding import LIMITED, RANDOM, may_fold, room_for_folds
from dfcompile.frontend.normaliser.opset import opset_of
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, Constant, Draft, copied
from dfcompile.frontend.onnx.draft_reading import constant_of
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.known_shapes import require
from dfcompile.frontend.onnx.reference_evaluation import alone, evaluate
from dfcompile.frontend.onnx.schemas import add_nodes, fits_schema
from dfcompile.frontend.onnx.shapes import TensorType, infer_types

MOST_NODES = 20_000  # that unrolling may give
_MOST_BYTES = 2**26  # of these nodes
_AXES_ARE_OPERANDS = 13  # operator set since which Split and Unsqueeze read them
_SIZES = frozenset(["Shape", "Size"])


class Scope(Struct):
    """What the names of a graph stand for in the rewritten model.

    Attributes:
        names: of the graph and of those around it; a name that is not there stands for itself.
        path: of the graph: node by node, as positions, and names of attributes; empty of the model's own graph.
        position: of the node that is looked at.
    """

    names: dict[str, str]
    path: tuple[int | str, ...] = ()
    position: int = 0

    def operand(self, name: str) -> str:
        """Return what a name stands for."""
        return self.names.get(name, name)

    def operands(self, node: onnx.NodeProto) -> list[str]:
        """Return what the operands of a node are called."""
        return [self.operand(name) for name in node.input]


Rule = Callable[["Rewriting", onnx.NodeProto, Scope], Sequence[str] | None]


class KnownValues:
    """The values of a growing list of nodes; each is computed once."""

    def __init__(self, draft: Draft) -> None:
        self._shell = draft.shell()
        self._known: dict[str, Constant] = dict(draft.constants)
        self._producers: dict[str, onnx.NodeProto] = {}
        self._order: dict[int, int] = {}
        self._types: dict[str, TensorType] = {}
        self._tried: set[int] = set()  # nodes of which nothing more will be known

    def add(self, node: onnx.NodeProto) -> None:
        """Take a node whose operands are there already."""
        self._order[id(node)] = len(self._order)
        self._producers.update((name, node) for name in node.output if name)

    def add_constant(self, name: str, value: Constant) -> None:
        """Take a constant."""
        self._known[name] = value

    def value(self, name: str) -> Constant | None:
        """Return a value; None if it depends on an input, or is too large to be computed before anything else.

        Raises:
            UserError: it depends on constants alone, but an operator cannot be computed.
        """
        for node in self._above(name, self._to_compute):
            if id(node) not in self._tried:
                self._tried.add(id(node))
                self._compute(node)
        return self._known.get(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a value, None if it is not known."""
        if name in self._known:
            return self._known[name].shape
        if name and name not in self._types:
            nodes = self._above(name, lambda node: node.input)
            proto = onnx.ModelProto()
            proto.CopyFrom(self._shell)
            del proto.graph.output[:]
            proto.graph.output.append(helper.make_empty_tensor_value_info(name))
            proto.graph.node.extend(nodes)
            read = {operand for node in nodes for operand in node.input}
            constants = {known: value for known, value in self._known.items() if known in read}
            self._types.update(infer_types(Draft(proto, constants)))
        found = self._types.get(name)
        return None if found is None else found.known_shape

    def _above(self, name: str, read: Callable[[onnx.NodeProto], Iterable[str]]) -> list[onnx.NodeProto]:
        """Return the nodes that a value depends on, as far as these read what counts, in order."""
        waiting, nodes = [name], dict[int, onnx.NodeProto]()
        while waiting:
            producer = self._producers.get(waiting.pop())
            if producer is not None and id(producer) not in nodes:
                nodes[id(producer)] = producer
                waiting += read(producer)
        return sorted(nodes.values(), key=lambda node: self._order[id(node)])

    def _to_compute(self, node: onnx.NodeProto) -> list[str]:
        """Return the operands of a node that are still to be computed; nothing if that would be in vain."""
        if id(node) in self._tried or node.op_type in RANDOM or node.op_type in _SIZES:
            return []
        missing = [operand for operand in node.input if operand and operand not in self._known]
        return missing if self._producers.keys() >= {*missing} else []

    def _compute(self, node: onnx.NodeProto) -> None:
        operands = {operand: self._known[operand] for operand in node.input if operand in self._known}
        if node.op_type in _SIZES:
            shape = self.shape(node.input[0])
            if shape is None:
                return
            operands = {node.input[0]: np.broadcast_to(np.zeros((), np.float32), shape)}
        elif node.op_type in RANDOM or any(operand and operand not in operands for operand in node.input):
            return
        model = alone(node, operands, self._shell)
        if node.op_type in LIMITED:
            types = infer_types(Draft(model, operands))
            if not may_fold(node, types, operands, room_for_folds(operands)):
                return
        found = evaluate(model, operands, f"node {node.name!r}: {node.op_type} of constants cannot be computed")
        self._known.update(zip(filter(None, node.output), found, strict=True))


class Rewriting:
    """The rewritten model as far as it is there."""

    def __init__(self, draft: Draft, rules: Mapping[str, Rule]) -> None:
        self.opset = opset_of(draft.proto)
        self.known = KnownValues(draft)
        self.sequences: dict[str, tuple[str, ...]] = {}
        self.absent: set[str] = set()  # values that are optional and not there
        self._draft = draft
        self._rules = rules
        self._constants: dict[str, Constant] = dict(draft.constants)
        self._shared: dict[tuple[int | str, ...], str] = {}  # constants of graphs that are put in again and again
        self._nodes: list[onnx.NodeProto] = []
        self._taken = draft.inner_names()
        self._numbers: dict[str, int] = {}
        self._unrolled = 0
        self._unrolled_bytes = 0

    def run(self) -> Draft:
        """Return the draft without the nodes that there is a rule for."""
        scope = Scope({})
        for scope.position, node in enumerate(self._draft.proto.graph.node):
            self._take(node, scope)
        for name in self._draft.output_names:
            source = scope.operand(name)
            if source in self.sequences or source in self.absent:
                raise UserError(f"output {name!r}: sequence against a tensor (only dense tensors can be compiled)")
            if source != name:
                self.node("Identity", [source], name, name)
        proto = self._draft.shell()
        add_nodes(proto, self._nodes)
        return Draft(proto, self._constants)

    def _take(self, node: onnx.NodeProto, scope: Scope) -> None:
        """Add a node of a graph under the names of the model, or what its rule makes of it."""
        rule = self._rules.get(node.op_type) if node.domain in OWN_DOMAINS else None
        if rule is not None and not fits_schema(node, self.opset):
            rule = None  # it is refused where the model is checked
        # Errors, and what the node becomes, have its name.
        named = node if node.name else copied(node, name=f"{node.op_type}_{scope.position}")
        results = None if rule is None else rule(self, named, scope)
        if results is not None:
            scope.names.update((name, result) for name, result in zip(node.output, results, strict=False) if name)
            return
        operands = scope.operands(node)
        for name in operands:
            if name in self.sequences or name in self.absent:
                raise UnsupportedOpError(f"node {node.name!r}: {node.op_type} reads a sequence against a tensor")
        given = [name and self.free(name) for name in node.output] if scope.path else list(node.output)
        scope.names.update((name, result) for name, result in zip(node.output, given, strict=True) if name != result)
        self._add(copied(node, operands, given))

    def inlined(self, node: onnx.NodeProto, attribute: str, bound: Sequence[str], around: Scope) -> list[str]:
        """Put a graph here and return what its results are called.

        Args:
            node: that holds the graph.
            attribute: which one.
            bound: what its inputs are called here.
            around: names that it can read.

        Raises:
            UserError: it has other inputs, or something that cannot be held, or too much has been put in.
        """
        where = f"node {node.name!r}"
        graph = next((entry.g for entry in node.attribute if entry.name == attribute and entry.HasField("g")), None)
        if graph is None:
            raise UserError(f"{where}: no graph {attribute!r} in {node.op_type}")
        inputs = [value.name for value in graph.input]
        if len(inputs) != len(bound):
            raise UserError(f"{where}: {len(inputs)} inputs of {attribute!r} against {len(bound)} of {node.op_type}")
        names = {**around.names, **dict(zip(inputs, bound, strict=True))}
        scope = Scope(names, (*around.path, around.position, attribute))
        for tensor in graph.initializer:
            scope.names[tensor.name] = self._shared_constant(scope, tensor.name, tensor)
        for scope.position, inner in enumerate(graph.node):
            self._unrolled += 1
            self._unrolled_bytes += inner.ByteSize()
            require(self._unrolled <= MOST_NODES, f"{where}: unrolling gives more than {MOST_NODES} nodes")
            require(self._unrolled_bytes <= _MOST_BYTES, f"{where}: unrolling gives more than {_MOST_BYTES} bytes")
            value = _tensor(inner)
            if value is None:
                self._take(inner, scope)
            else:
                scope.names[inner.output[0]] = self._shared_constant(scope, inner.output[0], value)
        return [scope.operand(value.name) for value in graph.output]

    def inlined_results(self, node: onnx.NodeProto, attribute: str, bound: Sequence[str], around: Scope) -> list[str]:
        """Put a graph here and return what its results are called, which are as many as those of the node.

        Raises:
            UserError: as `inlined`, or there is another number of results.
        """
        results = self.inlined(node, attribute, bound, around)
        if len(results) != len(node.output):
            found = f"{len(results)} results in {attribute!r} against {len(node.output)} results of {node.op_type}"
            raise UserError(f"node {node.name!r}: {found}")
        return results

    def _shared_constant(self, scope: Scope, name: str, tensor: onnx.TensorProto) -> str:
        key = (*scope.path, name)
        if key not in self._shared:
            self._shared[key] = self.constant(constant_of(tensor), name)
        return self._shared[key]

    def node(self, op_type: str, operands: Sequence[str], result: str, name: str, *, axis: int | None = None) -> str:
        """Add a node and return what its result is called."""
        self._add(helper.make_node(op_type, operands, [result], name=f"{name}.{op_type.lower()}", axis=axis))
        return result

    def constant(self, value: Constant, name: str) -> str:
        """Add a constant and return what it is called."""
        given = self.free(name)
        self._constants[given] = value
        self.known.add_constant(given, value)
        return given

    def free(self, name: str) -> str:
        """Return a name near to one that nothing else has."""
        return free_name(name, self._taken, self._numbers)

    def stacked(self, parts: Sequence[str], axis: int, name: str, *, is_new: bool = True) -> str:
        """Return what arrays side by side are called, along a new axis or one that they have."""
        if is_new:
            parts = [self.with_axis("Unsqueeze", part, axis, name) for part in parts]
        if len(parts) == 1:
            return parts[0]
        return self.node("Concat", parts, self.free(f"{name}.stacked"), name, axis=axis)

    def element(self, array: str, index: int, axis: int, name: str) -> str:
        """Return what the part of an array at an index along an axis is called; it has no such axis."""
        position = self.constant(np.asarray(index), f"{name}.position")
        return self.node("Gather", [array, position], self.free(f"{name}.element"), name, axis=axis)

    def cut(self, array: str, lengths: Sequence[int], axis: int, name: str) -> list[str]:
        """Return what consecutive parts of an array along an axis are called."""
        results = [self.free(f"{name}.part") for _ in lengths]
        node = helper.make_node("Split", [array], results, name=f"{name}.split", axis=axis)
        self._add_with(node, "split", lengths, f"{name}.lengths")
        return results

    def with_axis(self, op_type: str, array: str, axis: int, name: str) -> str:
        """Return what an array with or without an axis of extent 1 is called, by Unsqueeze or Squeeze."""
        result = self.free(f"{name}.{op_type.lower()}")
        node = helper.make_node(op_type, [array], [result], name=f"{name}.{op_type.lower()}")
        self._add_with(node, "axes", [axis], f"{name}.axes")
        return result

    def _add_with(self, node: onnx.NodeProto, attribute: str, numbers: Sequence[int], operand: str) -> None:
        """Add a node that is told numbers: as an attribute, in later operator sets as an operand."""
        if self.opset < _AXES_ARE_OPERANDS:
            node.attribute.append(helper.make_attribute(attribute, list(numbers)))
        else:
            node.input.append(self.constant(np.asarray(numbers, np.int64), operand))
        self._add(node)

    def _add(self, node: onnx.NodeProto) -> None:
        self._nodes.append(node)
        self.known.add(node)


def _tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor that a node is nothing but."""
    if node.op_type != "Constant" or len(node.output) != 1:
        return None
    return next((entry.t for entry in node.attribute if entry.name == "value" and entry.HasField("t")), None)


def undecided(node: onnx.NodeProto, why: str) -> UnsupportedOpError:
    """Return the error of a node whose control flow the model's inputs decide."""
    return UnsupportedOpError(f"node {node.name!r}: {node.op_type} holds a graph against a plain operator ({why})")

"""Branches: an If whose condition is a constant is replaced by the branch that it takes."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.reference_evaluation import evaluate


def with_taken_branches(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without those If nodes whose condition depends on constants alone; the model itself if none does.

    ``y = If(true) <then_branch = {a = Relu(x)}, …>`` becomes ``y = Relu(x)``, and so on in what then stands there.
    Names of the branch that the model has already get a number.

    Raises:
        UserError: a condition is not one truth value, or a branch gives another number of results than the node.
    """
    while True:
        nodes = model.graph.node
        known = _Known(model)
        conditions = {at: known.condition(node) for at, node in enumerate(nodes) if node.op_type == "If"}
        if all(condition is None for condition in conditions.values()):
            return model
        taken = set(_names(model.graph))
        rewritten = onnx.ModelProto()
        rewritten.CopyFrom(model)
        del rewritten.graph.node[:]
        for at, node in enumerate(nodes):
            condition = conditions.get(at)
            if condition is None:
                rewritten.graph.node.append(node)
            else:
                _inline(node, _branch(node, taken_if=condition), rewritten.graph, taken)
        model = rewritten


class _Known:
    """What is known of a model's values before anything else of it is looked at."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = {name: node for node in model.graph.node for name in node.output if name}

    def condition(self, node: onnx.NodeProto) -> bool | None:
        """Return the value of an If node's condition, None if it depends on an input.

        Raises:
            UserError: it is not one truth value.
        """
        name = node.input[0] if node.input else ""
        needed = self._ancestors(name)
        if needed is None:
            return None
        (value,) = self._computed(name, needed)
        if value.dtype != np.bool_ or value.size != 1:
            found = f"{value.dtype} {list(value.shape)}"
            raise UserError(f"node {node.name!r}: condition {name!r} is {found} against one truth value")
        return bool(value.item())

    def _ancestors(self, name: str) -> tuple[onnx.NodeProto, ...] | None:
        """Return the nodes that a value is computed by, in the model's order; None if not constants alone do."""
        waiting, seen, found = [name], {name}, set()
        while waiting:
            value = waiting.pop()
            if value in self._initializers:
                continue
            producer = self._producers.get(value)
            if producer is None or subgraphs(producer) or producer.op_type.startswith(("Random", "Bernoulli")):
                return None
            found.add(id(producer))
            waiting += [each for each in producer.input if each and each not in seen]
            seen.update(producer.input)
        return tuple(node for node in self._model.graph.node if id(node) in found)

    def _computed(self, name: str, nodes: tuple[onnx.NodeProto, ...]) -> tuple[Constant, ...]:
        if not nodes:
            return (numpy_helper.to_array(self._initializers[name]),)
        read = {value for node in nodes for value in node.input}
        constants = [tensor for tensor in self._initializers.values() if tensor.name in read]
        graph = helper.make_graph(nodes, "condition", [], [helper.make_empty_tensor_value_info(name)], constants)
        alone = helper.make_model(
            graph, opset_imports=list(self._model.opset_import), ir_version=self._model.ir_version
        )  # fmt: skip
        return evaluate(alone, {}, f"condition {name!r}: cannot be computed")


def _branch(node: onnx.NodeProto, *, taken_if: bool) -> onnx.GraphProto:
    name = "then_branch" if taken_if else "else_branch"
    graph = next((entry.g for entry in node.attribute if entry.name == name), None)
    if graph is None or len(graph.output) != len(node.output):
        found = "no branch" if graph is None else f"{len(graph.output)} results"
        raise UserError(f"node {node.name!r}: {found} in {name!r} against {len(node.output)} results of {node.op_type}")
    return graph


def _inline(node: onnx.NodeProto, branch: onnx.GraphProto, target: onnx.GraphProto, taken: set[str]) -> None:
    """Put a branch in the place of its node."""
    wanted = dict(zip((value.name for value in branch.output), node.output, strict=True))
    produced = {name for inner in branch.node for name in inner.output}
    renamed: dict[str, str] = {}
    for name in (
        *(tensor.name for tensor in branch.initializer),
        *(name for inner in branch.node for name in inner.output),
    ):
        if name and name not in renamed:
            result = wanted.get(name, "") if name in produced else ""
            renamed[name] = result or free_name(name, taken)
    for tensor in branch.initializer:
        target.initializer.add().CopyFrom(tensor)
        target.initializer[-1].name = renamed[tensor.name]
    target.sparse_initializer.extend(branch.sparse_initializer)
    for inner in branch.node:
        target.node.append(_rewired(inner, renamed))
    for inside, outside in zip((value.name for value in branch.output), node.output, strict=True):
        source = renamed.get(inside, inside)
        if outside and source != outside:
            target.node.append(helper.make_node("Identity", [source], [outside], name=f"{node.name}.result"))


def _rewired(node: onnx.NodeProto, renamed: Mapping[str, str]) -> onnx.NodeProto:
    wired = onnx.NodeProto()
    wired.CopyFrom(node)
    wired.output[:] = [renamed.get(name, name) for name in node.output]
    _rename_read(wired, renamed)
    return wired


def _rename_read(node: onnx.NodeProto, renamed: Mapping[str, str]) -> None:
    """Rename what a node reads, in place; the graphs that it holds read from around them as well."""
    node.input[:] = [renamed.get(name, name) for name in node.input]
    for graph in subgraphs(node):
        own = {*(tensor.name for tensor in graph.initializer), *(value.name for value in graph.input)}
        own.update(name for inner in graph.node for name in inner.output)
        outer = {name: new for name, new in renamed.items() if name not in own}
        for inner in graph.node:
            _rename_read(inner, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)


def subgraphs(node: onnx.NodeProto) -> tuple[onnx.GraphProto, ...]:
    """Return the graphs that a node holds as attributes."""
    return tuple(
        graph
        for entry in node.attribute
        if entry.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        for graph in ((entry.g,) if entry.type == onnx.AttributeProto.GRAPH else entry.graphs)
    )


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield every name of a value of a graph and of the graphs in it."""
    values: Iterable[onnx.ValueInfoProto] = (*graph.input, *graph.output)
    yield from (value.name for value in values)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from node.input
        yield from node.output
        for inner in subgraphs(node):
            yield from _names(inner)

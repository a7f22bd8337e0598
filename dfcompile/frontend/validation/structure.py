"""Structure: operators that exist and are dealt with, values that are produced once and before they are read."""

import math
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import AttributeProto, checker

from dfcompile.errors import MOST_ERRORS, UnsupportedOpError, UserError, nearest, together
from dfcompile.frontend.normaliser.constant_folding import OF_SHAPES
from dfcompile.frontend.normaliser.opset import opset_of
from dfcompile.frontend.onnx.contributed_operator import DOMAIN
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, Draft, needed_for, text
from dfcompile.frontend.onnx.known_shapes import require
from dfcompile.frontend.onnx.schemas import CONTRIBUTED, schema_of
from dfcompile.frontend.onnx.shapes import checkable, stand_in
from dfcompile.frontend.operator_claims import known_operators, refusal_of
from dfcompile.host.printable import one_line

_TERM = r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?"  # one way to match, or a long equation takes forever
_GROUP_NORMALIZATION_AGAIN = 21
_LARGEST_AXIS = 2**31 - 1
_GRAPHS = frozenset([AttributeProto.GRAPH, AttributeProto.GRAPHS])


def check_structure(draft: Draft, operators: frozenset[str] | None = None) -> None:
    """Check what needs no shapes.

    Args:
        draft: with named nodes, as read.
        operators: types of ONNX operators that can be lowered, if they are known.

    Raises:
        UnsupportedOpError: operators of another domain than ONNX's, some that hold a graph (control flow), or some that
            nothing deals with; all of them.
        UserError: unknown operator or operator set, a value read but not produced, produced twice or after it is
            read, a cycle, an attribute that is not finite, or anything that ONNX's checker finds.
    """
    opset = opset_of(draft.proto)
    require(draft.output_names, "model: no output (a compiled model computes something)")
    unsupported = [*_unsupported(draft, operators)]
    if unsupported:
        raise together(unsupported)
    for node in draft.proto.graph.node:
        try:
            schema_of(node.op_type, opset)
        except onnx.defs.SchemaError as error:
            found = f"{node.op_type} is no operator of set {opset}"
            raise UserError(f"node {node.name!r}: {found} (convert the model)") from error
        _check_attributes(node)
    producers = _producers(draft)
    _check_order(draft, producers)
    _check_outputs(draft, producers)
    proto = checkable(draft)
    for node in proto.graph.node:
        if node.op_type == "GroupNormalization" and opset < _GROUP_NORMALIZATION_AGAIN and node.input:
            # ONNX declared its first version void, so that the checker refuses models that were right before.
            stand_in(node, node.input[0])
    for output in proto.graph.output:
        # Outputs without a declared type or shape are usual, and theirs is inferred anyway.
        output.type.tensor_type.shape.SetInParent()
        output.type.tensor_type.elem_type = output.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
    try:
        checker.check_model(proto)
    except (checker.ValidationError, ValueError) as error:
        name = str(error).partition("Bad node spec for node. Name: ")[2].partition(" OpType:")[0]
        raise UserError(f"{f'node {name!r}' if name else 'model'}: {one_line(error)}") from error


def _unsupported(draft: Draft, operators: frozenset[str] | None) -> Iterator[UnsupportedOpError]:
    """Yield the errors of operators that nothing deals with, before anything else is looked at."""
    known, needed = known_operators(), _needed_when_run(draft)
    count = 0
    for node, is_needed in zip(draft.proto.graph.node, needed, strict=True):
        if node.op_type in CONTRIBUTED:
            continue
        if node.domain not in OWN_DOMAINS:
            name = f"{node.domain}.{node.op_type}"
            hint = nearest(name, CONTRIBUTED) if node.domain == DOMAIN and count < MOST_ERRORS else ""
            found = f"operator {name} against an operator of ONNX itself{hint}"
        elif node.op_type not in known:
            hint = nearest(node.op_type, known) if count < MOST_ERRORS else ""  # which nobody sees of later ones
            found = f"no operator {node.op_type!r} in ONNX{hint}"
        elif any(attribute.type in _GRAPHS for attribute in node.attribute):
            found = f"{node.op_type} holds a graph against a plain operator (control flow; unroll it)"
        else:
            reason = refusal_of(node.op_type, operators) if is_needed else ""
            found = f"no expansion for {node.op_type!r} ({reason})" if reason else ""
        if found:
            count += 1
            yield UnsupportedOpError(f"node {node.name!r}: {found}")


def _needed_when_run(draft: Draft) -> list[bool]:
    """Return per node whether an output depends on it, and it on an input or on nothing: it cannot be computed once."""
    nodes = tuple(draft.proto.graph.node)
    wanted = needed_for(draft.output_names, nodes)
    given = set(draft.input_names)
    found = []
    for node in nodes:
        operands = [name for name in node.input if name]
        is_run = node.op_type not in OF_SHAPES and (not operands or not given.isdisjoint(operands))
        given.update(node.output if is_run else ())
        found.append(is_run and not wanted.isdisjoint(node.output))
    return found


def _check_attributes(node: onnx.NodeProto) -> None:
    where = f"node {node.name!r}:"
    for attribute in node.attribute:
        place, number = (node.op_type, attribute.name), attribute.i
        found = f"{where} attribute {attribute.name!r} is"
        if place == ("Einsum", "equation"):
            equation = text(node, "equation")
            is_one = re.fullmatch(rf"{_TERM}(,{_TERM})*(->{_TERM})?", equation.replace(" ", "")) is not None
            # ONNX's inference never ends on some that are none.
            require(is_one, f"{where} equation {equation!r} against one such as 'bij,bjk->bik'")
        elif place == ("Split", "num_outputs"):
            require(number == len(node.output), f"{found} {number} against {len(node.output)} results")
        elif place == ("GatherND", "batch_dims"):
            # ONNX's inference reads beside its memory.
            require(number >= 0, f"{found} {number} against at least 0")
        elif place == ("Celu", "alpha"):
            require(attribute.f != 0, f"{found} 0 against a number to divide by")
        if attribute.name == "axis" and attribute.type == AttributeProto.INT:
            # ONNX's inference keeps 32 bits of it, and reads beside its memory.
            require(abs(number) <= _LARGEST_AXIS, f"{found} {number} against {-_LARGEST_AXIS} to {_LARGEST_AXIS}")
        for real in [attribute.f] if attribute.type == AttributeProto.FLOAT else attribute.floats:
            require(math.isfinite(real), f"{found} {real} against a finite number")


def _producers(draft: Draft) -> Mapping[str, str]:
    """Return what gives each value, as it reads in errors."""
    producers = dict.fromkeys(draft.constants, "an initializer")
    for name in draft.input_names:
        require(name not in producers, f"input {name!r}: stands twice in the model")
        producers[name] = "an input"
    for node in draft.proto.graph.node:
        for name in filter(None, node.output):
            if name in producers:
                raise UserError(f"node {node.name!r}: output {name!r} is already given by {producers[name]}")
            producers[name] = f"node {node.name!r}"
    return producers


def _check_order(draft: Draft, producers: Mapping[str, str]) -> None:
    for node in draft.proto.graph.node:
        for name in filter(None, node.input):
            if name not in producers:
                found = f"input {name!r} is no input, initializer or result of the model"
                raise UserError(f"node {node.name!r}: {found}{nearest(name, producers)}")
    ready = {*draft.constants, *draft.input_names}
    for node in draft.proto.graph.node:
        for name in filter(None, node.input):
            if name not in ready:
                cycle, late = _cycle(draft), f"reads {name!r} before {producers[name]} gives it (sort the nodes)"
                raise UserError(f"model: nodes {cycle} form a cycle" if cycle else f"node {node.name!r}: {late}")
        ready.update(node.output)


def _cycle(draft: Draft) -> str:
    """Return the nodes of a cycle, or nothing if there is none."""
    nodes = draft.proto.graph.node
    producers = {name: node.name for node in nodes for name in filter(None, node.output)}
    try:
        reads = {node.name: [producers[name] for name in node.input if name in producers] for node in nodes}
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        return ", ".join(map(repr, error.args[1][1:]))
    return ""


def _check_outputs(draft: Draft, producers: Mapping[str, str]) -> None:
    seen = set()
    for name in draft.output_names:
        if name not in producers:
            raise UserError(f"output {name!r}: nothing in the model gives it{nearest(name, producers)}")
        require(name not in seen, f"output {name!r}: stands twice in the model")
        seen.add(name)

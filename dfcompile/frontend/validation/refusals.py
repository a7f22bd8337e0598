"""Refusals: operators that nothing deals with, all of them at once, before anything else is looked at."""

from collections.abc import Iterator

from onnx import AttributeProto

from dfcompile.errors import MOST_ERRORS, UnsupportedOpError, nearest, together
from dfcompile.frontend.normaliser.fold_limits import OF_SHAPES
from dfcompile.frontend.onnx.contributed import CONTRIBUTED
from dfcompile.frontend.onnx.contributed_operator import DOMAIN
from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.nodes import OWN_DOMAINS, needed_for
from dfcompile.frontend.operator_claims import known_operators, refusal_of

_GRAPHS = frozenset([AttributeProto.GRAPH, AttributeProto.GRAPHS])


def check_supported(draft: Draft, operators: frozenset[str] | None) -> None:
    """Check that something deals with each operator.

    Args:
        draft: with named nodes, as read.
        operators: types of ONNX operators that can be lowered, if they are known. A node of another type may still be
            computed once, or not be needed.

    Raises:
        UnsupportedOpError: operators of another domain than ONNX's, some that hold a graph (control flow), or some that
            nothing deals with; all of them.
    """
    unsupported = [*_unsupported(draft, operators)]
    if unsupported:
        raise together(unsupported)


def _unsupported(draft: Draft, operators: frozenset[str] | None) -> Iterator[UnsupportedOpError]:
    known, needed = known_operators(), _needed_when_run(draft)
    count = 0
    for node, is_needed in zip(draft.proto.graph.node, needed, strict=True):
        where = f"node {node.name!r}"
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
            yield UnsupportedOpError(f"{where}: {found}")


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

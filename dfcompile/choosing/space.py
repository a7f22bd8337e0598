"""Which expansions the operators of a model may have."""

from collections.abc import Iterator, Mapping, Sequence

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import PIECES_PER_ELEMENT, Space
from dfcompile.expansion_names import base_name
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.lowering import ExpansionTable, KnownAlternatives, OperatorAlternatives
from dfcompile.lowering.alternatives.known import CanonicalAlternatives
from dfcompile.options import Choice, ExpansionRule


def space_of(
    known: KnownAlternatives,
    table: ExpansionTable,
    rules: Sequence[ExpansionRule],
    granularities: Sequence[Granularity],
    pes: int,
) -> Space:
    """Return what may be chosen for a model.

    Args:
        known: its operators, each under the expansions that take it.
        table: what is registered.
        rules: of the user: a rule of one name is kept, one of several limits what is chosen from.
        granularities: that are looked at.
        pes: number of processing elements P.
    """
    fixed = tuple(Choice(rule.op_type, rule.names[0], rule.origin) for rule in rules if len(rule.names) == 1)
    limits = {rule.op_type: rule.names for rule in rules if not rule.origin}
    onnx: dict[str, set[str]] = {}
    canonical: dict[str, set[str]] = {}
    for op in known.operators:
        onnx.setdefault(op.op_type, set()).update(_names(op))
        for inner in (inner for each in op.expansions for inner in each.operators):
            canonical.setdefault(inner.op_type, set()).update(_suited(inner, pes))
    of_model = _several(table, ONNX, onnx, limits)
    return Space(
        onnx=of_model,
        canonical=_several(table, CANONICAL, canonical, limits),
        single={
            (op_type, name): _instead(known, op_type, name) for op_type, names in of_model.items() for name in names
        },
        fixed=fixed,
        granularities=tuple(granularities),
    )


def _several(
    table: ExpansionTable, dialect: str, taken: Mapping[str, set[str]], limits: Mapping[str, Sequence[str]]
) -> Mapping[str, tuple[str, ...]]:
    """Return the expansions of each type that has several; those that take no operator only where a rule names them."""
    found = {}
    for op_type in sorted(taken):
        registered = table.by_operator.get((dialect, op_type), {})
        names = tuple(name for name in registered if name in limits.get(op_type, taken[op_type]))
        if len(names) > 1:
            found[op_type] = names
    return found


def _suited(op: CanonicalAlternatives, pes: int) -> Iterator[str]:
    """Yield the expansions of a canonical operator, of a parametric one the values that suit P elements.

    These give the fewest tasks, but one for each piece into which scopes are cut. Where results alone are as many, no
    more tasks are needed.
    """
    parametric: dict[str, list[tuple[int, str]]] = {}
    for name, scopes in op.scopes.items():
        if base_name(name) == name:
            yield name
        elif scopes[-1].members * scopes[-1].written < pes * PIECES_PER_ELEMENT[-1]:
            parametric.setdefault(base_name(name), []).append((max(scope.members for scope in scopes), name))
    for values in parametric.values():
        most = max(tasks for tasks, _ in values)
        for times in PIECES_PER_ELEMENT:
            yield next(name for tasks, name in values if tasks >= min(pes * times, most))


def _instead(known: KnownAlternatives, op_type: str, name: str) -> tuple[Choice, ...]:
    """Return the expansions of the operators of a type that one does not take."""
    refused = [op for op in known.operators if op.op_type == op_type and name not in _names(op)]
    return tuple(Choice(op_type, _names(op)[0], op.origin) for op in refused)


def _names(op: OperatorAlternatives) -> tuple[str, ...]:
    return tuple(each.name for each in op.expansions)

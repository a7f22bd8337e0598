"""What choices of expansions are about, whether a model has such operators, and what fits where a choice does not."""

from collections.abc import Collection, Iterator, Sequence

from dfcompile.errors import UnfitExpansionError, UnsupportedOpError, UserError, nearest
from dfcompile.expansion_names import is_within, told_names
from dfcompile.frontend import Program
from dfcompile.lowering.canonical_fragment import Border
from dfcompile.lowering.expansion import ExpansionTable
from dfcompile.lowering.node import Operator
from dfcompile.lowering.program_nodes import operator_nodes
from dfcompile.options import Choice


def addressed(choice: Choice, table: ExpansionTable, origins: Collection[str]) -> Choice:
    """Return a choice whose operator type, name or pattern is told apart.

    ``Conv=direct`` is about a type, ``conv1=direct`` and ``layer.*.attn=ip`` about operators by name or pattern,
    ``conv1:MatMul=ip`` and ``layer.*.attn/MatMul=ip`` about those of a type among them.

    Args:
        choice: as it was read: of a type, perhaps with an origin.
        table: the types that are known.
        origins: the user's operators.

    Raises:
        UserError: there is neither a type nor an operator of that name; the message has the nearest ones.
    """
    types = {op_type for _, op_type in table.by_operator}
    if choice.op_type in types and (not choice.origin or _names(choice.origin, origins)):
        return choice
    if _names(choice.key, origins):
        return Choice("", choice.name, choice.key)
    pattern, _, op_type = choice.key.rpartition("/")
    if pattern and op_type in types:
        return Choice(op_type, choice.name, _named(choice, pattern, origins))
    if choice.op_type in types:
        return Choice(choice.op_type, choice.name, _named(choice, choice.origin, origins))
    hint = _longer(choice.key, origins) or nearest(choice.key, sorted({*types, *origins}))
    raise UserError(f"expansion '{choice}': no operator type {choice.op_type!r} and no operator {choice.key!r}{hint}")


def operator_origins(program: Program) -> tuple[str, ...]:
    """Return the user's operators of a program, in its order."""
    return tuple(dict.fromkeys(node.origin for node in operator_nodes(program)))


def check_choices(choices: Sequence[Choice], table: ExpansionTable, programs: Sequence[Program]) -> None:
    """Check that every choice names a registered expansion and fits an operator of the model.

    Args:
        choices: of the user, addressed.
        table: what is registered.
        programs: the levels at which operators are looked for.

    Raises:
        UserError: naming the choice, with the nearest name that exists.
    """
    present = {(node.origin, node.op_type) for program in programs for node in operator_nodes(program)}
    origins = {origin for origin, _ in present}
    for choice in choices:
        if choice.op_type:
            table.check(choice)
        if choice.origin:
            _named(choice, choice.origin, origins)
        within = {op_type for origin, op_type in present if not choice.origin or _names(choice.origin, [origin])}
        types = within if not choice.op_type else within & {choice.op_type}
        tables = (named for (_, op_type), named in table.by_operator.items() if op_type in types)
        names = {name for named in tables for name in named}
        where = f"operator {choice.origin!r}" if choice.origin else "the model"
        if choice.op_type and choice.op_type not in within:
            raise UserError(f"expansion '{choice}': {where} has no {choice.op_type}{nearest(choice.op_type, within)}")
        if choice.name not in names:
            hint = nearest(choice.name, told_names(names))
            raise UserError(f"expansion '{choice}': {where} has no {choice.name!r}{hint}")


def _named(choice: Choice, pattern: str, origins: Collection[str]) -> str:
    if not _names(pattern, origins):
        hint = _longer(pattern, origins) or nearest(pattern, origins)
        raise UserError(f"expansion '{choice}': no operator {pattern!r}{hint}")
    return pattern


def _longer(name: str, origins: Collection[str]) -> str:
    """Return a hint at the operators and modules whose names end with a name, such as ``block.conv`` with ``conv``."""
    parts = (origin[:at] for origin in origins for at in (*_ends(origin), len(origin)))
    found = list(dict.fromkeys(part for part in parts if part.endswith((f".{name}", f"/{name}"))))
    if not found:
        return ""
    if len(found) == 1:
        return f" (did you mean {found[0]!r}?)"
    more = f" or {len(found) - 1} more" if len(found) > 2 else f" or {found[1]!r}"
    return f" (did you mean {found[0]!r}{more}? '*{found[0][-len(name) - 1 :]}' is all of them)"


def _ends(origin: str) -> Iterator[int]:
    """Yield where the names of the modules end that an operator belongs to."""
    yield from (at for at, letter in enumerate(origin) if letter in "./")


def _names(pattern: str, origins: Collection[str]) -> bool:
    return any(pattern == origin or is_within(pattern, origin) for origin in origins)


def explained(
    error: UnsupportedOpError, op: Operator, table: ExpansionTable, choices: Sequence[Choice], border: Border
) -> UnsupportedOpError:
    """Return the error with the expansions that fit, and the option to type, where a choice named the one that failed.

    Args:
        error: that the expansion raised.
        op: operator of level 0.
        table: what is registered.
        choices: in effect.
        border: what the operator sees of the program.
    """
    named = table.by_operator.get((op.dialect, op.op_type), {})
    if all(choice.name not in named or choice.fit(op.op_type, op.origin, op.name) is None for choice in choices):
        return error
    chosen = table.select(op, choices).name
    fitting = list(_fitting(op, table, chosen, border))
    if not fitting:
        return error
    reason = str(error).removeprefix(str(op.unsupported("")))
    told = f"operator {op.origin!r}: {op.op_type}={chosen} does not fit: {reason}"
    return UnfitExpansionError(f"{told} (add --expand {op.origin}:{op.op_type}={' or '.join(fitting)})")


def _fitting(op: Operator, table: ExpansionTable, chosen: str, border: Border) -> Iterator[str]:
    """Yield the other expansions that take the operator, the default first."""
    default = table.select(op, ()).name
    named = table.by_operator[op.dialect, op.op_type]
    for name in sorted(named, key=lambda name: (name != default, name)):
        if name != chosen and not named[name].runs_only:
            try:
                named[name].outline(op, border)
            except UserError:
                continue
            yield name

"""What to say of an operator that does not have the form which the expansion that was named for it takes."""

from collections.abc import Iterator, Sequence

from dfcompile.errors import UnfitExpansionError, UnsupportedOpError, UserError
from dfcompile.lowering.canonical_fragment import Border
from dfcompile.lowering.expansion import ExpansionTable
from dfcompile.lowering.node import Operator
from dfcompile.options import Choice


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

"""Refusals: what an expansion does not know of an operator is refused by name."""

from collections.abc import Mapping

from dfcompile.frontend import AttributeValue
from dfcompile.lowering.node import Operator


def check_unknown(
    op: Operator,
    *,
    operands: Mapping[int, str] | None = None,
    results: Mapping[int, str] | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> None:
    """Check that an operator has nothing that its expansion does not know.

    Args:
        op: the operator.
        operands: names of those that have to be omitted, by position.
        results: names of those that the model must not use, by position.
        attributes: the one value that each may have.

    Raises:
        UnsupportedOpError: it has, naming the first.
    """
    for position, name in (operands or {}).items():
        if op.optional_input(position) is not None:
            raise op.unsupported(f"the operand {name!r} has no expansion")
    for position, name in (results or {}).items():
        if op.optional_output(position) is not None:
            raise op.unsupported(f"the result {name!r} has no expansion")
    for name, known in (attributes or {}).items():
        found = op.attributes.get(name, known)
        if found != known:
            raise op.unsupported(f"attribute {name!r} is {found!r} against {known!r}")

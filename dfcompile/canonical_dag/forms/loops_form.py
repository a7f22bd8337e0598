"""Loops of a kernel as one text: ``row m 16 parallel 64@0,- 64@0; k k 64 sum 1@1,32@0 -``.

Name, part, extent and kind of each loop, then where it moves in each operand and in each result: ``stride@axis``, or
``-`` where it does not.
"""

import re
from collections.abc import Sequence

from dfcompile.canonical_dag.forms.reference import shortened
from dfcompile.canonical_dag.kernel import Digit, KernelLoop, LoopKind, LoopPart
from dfcompile.errors import UserError

_DIGITS = r"(?:-|\d{1,18}@\d{1,3})(?:,(?:-|\d{1,18}@\d{1,3}))*|"
_LOOP = re.compile(
    r"(?P<name>[^\s;]+) (?P<part>\w+) (?P<extent>\d{1,18}) (?P<kind>\w+) "
    rf"(?P<inputs>{_DIGITS}) (?P<outputs>{_DIGITS})"
)


def format_loops(loops: Sequence[KernelLoop]) -> str:
    """Return the text of loops."""
    return "; ".join(
        f"{loop.name} {loop.part} {loop.extent} {loop.kind} {_digits(loop.inputs)} {_digits(loop.outputs)}"
        for loop in loops
    )


def parse_loops(text: str, where: str) -> tuple[KernelLoop, ...]:
    """Parse what `format_loops` gives.

    Raises:
        UserError: with ``where`` in front.
    """
    return tuple(_loop(part.strip(" "), where) for part in text.split(";")) if text else ()


def _digits(digits: Sequence[Digit | None]) -> str:
    return ",".join("-" if digit is None else f"{digit.stride}@{digit.axis}" for digit in digits)


def _loop(text: str, where: str) -> KernelLoop:
    found = _LOOP.fullmatch(text)
    if found is None or found["part"] not in list(LoopPart) or found["kind"] not in list(LoopKind):
        raise UserError(
            f"{where}: loop {shortened(repr(text))} against 'NAME {'|'.join(LoopPart)} EXTENT {'|'.join(LoopKind)} "
            "OPERANDS RESULTS', each of these '-' or STRIDE@AXIS"
        )
    inputs, outputs = (
        tuple(_digit(digit) for digit in found[side].split(",")) if found[side] else ()
        for side in ("inputs", "outputs")
    )
    return KernelLoop(
        found["name"], LoopPart(found["part"]), int(found["extent"]), LoopKind(found["kind"]), inputs, outputs
    )


def _digit(text: str) -> Digit | None:
    if text == "-":
        return None
    stride, _, axis = text.partition("@")
    return Digit(int(stride), int(axis))

"""Claims: how each operator of ONNX is dealt with, or why it is refused."""

from collections.abc import Collection, Mapping
from enum import Enum, unique
from functools import cache

import onnx
from msgspec import Struct

from dfcompile.frontend.normaliser.constant_folding import RANDOM, TEXTS
from dfcompile.frontend.normaliser.control_flow.rules import RULES
from dfcompile.frontend.normaliser.functions import FUNCTIONS
from dfcompile.frontend.normaliser.wiring import FOLDED


@unique
class Cover(Enum):
    """How an operator is dealt with; the value is how that reads."""

    EXPANSIONS = "own expansions"
    DEFINITION = "replaced by what ONNX defines it as"
    FOLDED = "computed once, of constants or shapes"
    UNROLLED = "unrolled, where constants and static shapes decide"
    REPLACED = "replaced by other operators"
    REFUSED = "refused"


class Claim(Struct, frozen=True):
    """What is claimed of an operator.

    Attributes:
        op_type: such as ``Relu``.
        versions: operator sets that define it anew, oldest first.
        cover: how it is dealt with.
        reason: why it is refused, or what it is replaced by; else empty.
    """

    op_type: str
    versions: tuple[int, ...]
    cover: Cover
    reason: str = ""


_REPLACED = {"Compress": "a Gather at the places of a constant condition", "Upsample": "a Resize"}
_DRAWN = "its values are drawn when the model runs; replace them by an input"
_REFUSED: Mapping[str, str] = {
    "ImageDecoder": "it decodes the bytes of a file",
    **dict.fromkeys(RANDOM, _DRAWN),
    **dict.fromkeys(TEXTS, "its operands are texts"),
}
_NOTHING = "nothing deals with it yet"


@cache
def known_operators() -> Mapping[str, tuple[int, ...]]:
    """Return the operators of ONNX, each with the operator sets that define it anew."""
    versions: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            versions.setdefault(schema.name, []).append(schema.since_version)
    return {name: tuple(sorted(versions[name])) for name in sorted(versions)}


def refusal_of(op_type: str, expanded: Collection[str] | None) -> str:
    """Return why an operator is refused whatever its operands are; nothing if it need not be.

    Args:
        op_type: of ONNX.
        expanded: operators that have an expansion; ``None``: any may have one.
    """
    claim = None if expanded is None else _claim(op_type, expanded)
    return claim.reason if claim is not None and claim.cover is Cover.REFUSED else ""


def operator_claims(expanded: Collection[str]) -> tuple[Claim, ...]:
    """Return what is claimed of every operator of ONNX, by name.

    Args:
        expanded: operators that have an expansion: what is said of them here does not count.
    """
    return tuple(_claim(op_type, expanded) for op_type in known_operators())


def _claim(op_type: str, expanded: Collection[str]) -> Claim:
    versions = known_operators()[op_type]
    covers = (
        (expanded, Cover.EXPANSIONS), (FUNCTIONS, Cover.DEFINITION), (FOLDED, Cover.FOLDED), (RULES, Cover.UNROLLED)
    )  # fmt: skip
    for operators, cover in covers:
        if op_type in operators:
            return Claim(op_type, versions, cover)
    if op_type in _REPLACED:
        return Claim(op_type, versions, Cover.REPLACED, _REPLACED[op_type])
    return Claim(op_type, versions, Cover.REFUSED, _REFUSED.get(op_type, _NOTHING))

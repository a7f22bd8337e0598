"""Expansions: named rewrites of one operator type to the next level."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.operator import Operator

OnnxRewrite: TypeAlias = Callable[[Operator, CanonicalFragment], None]
CanonicalRewrite: TypeAlias = Callable[[Operator, MapFragment], None]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A named rewrite of one operator type; a value, found by the collector.

    Attributes:
        dialect: of the operator: ``onnx`` (rewritten to canonical operators) or ``canonical`` (to map scopes).
        op_type: such as ``MatMul``.
        name: such as ``mv``; unique per operator type.
        rewrite: the function that was decorated, called with the operator and a fragment of its dialect.
        source: citation key of where it comes from.
        is_default: whether it is taken when the user names none.
        module: where it is defined.
    """

    dialect: str
    op_type: str
    name: str
    rewrite: Callable[..., None]
    source: str
    is_default: bool
    module: str

    def __str__(self) -> str:
        return f"{self.dialect}.{self.op_type}={self.name}"

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]


def expansion(
    op_type: str, name: str, *, source: str, default: bool = False
) -> Callable[[CanonicalRewrite], Expansion]:
    """Make an `Expansion` of a canonical operator from a function; importing it changes nothing anywhere.

    Args:
        op_type: canonical operator type, such as ``MatMul``.
        name: of the expansion, as the user writes it in ``--expand``.
        source: citation key, listed in docs/references.md.
        default: taken when the user names none; the only expansion of an operator is its default anyway.
    """

    def decorate(rewrite: CanonicalRewrite) -> Expansion:
        return Expansion(CANONICAL, op_type, name, rewrite, source, default, rewrite.__module__)

    return decorate


def onnx_expansion(
    op_type: str, name: str, *, source: str = "onnx", default: bool = False
) -> Callable[[OnnxRewrite], Expansion]:
    """Make an `Expansion` of an ONNX operator from a function; see `expansion`."""

    def decorate(rewrite: OnnxRewrite) -> Expansion:
        return Expansion(ONNX, op_type, name, rewrite, source, default, rewrite.__module__)

    return decorate

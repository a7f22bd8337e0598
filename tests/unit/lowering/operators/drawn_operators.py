"""Draws canonical operators of any class from the types of their fields alone."""

from enum import Enum

from hypothesis import strategies as st

from dfcompile.lowering.operators.base import CanonicalOperator, schema_of
from dfcompile.lowering.operators.field_kinds import FieldKind, Items, Maybe, Member, Scalar, Word

_LONGEST = 4


def operators(operator: type[CanonicalOperator]) -> st.SearchStrategy[CanonicalOperator]:
    """Return operators of a class with any values that its fields can have."""
    kinds = schema_of(operator).kinds
    return st.builds(operator, **{name: _values(kind) for name, kind in kinds.items()})


def _values(kind: FieldKind) -> st.SearchStrategy[object]:
    match kind:
        case Scalar():
            return _scalars(kind)
        case Member():
            members: list[Enum] = list(kind.members)
            return st.sampled_from(members)
        case Word():
            return st.sampled_from(kind.words)
        case Items(is_any_length=True):
            return st.lists(_values(kind.kinds[0]), max_size=_LONGEST).map(tuple)
        case Items():
            return st.tuples(*map(_values, kind.kinds))
        case Maybe():
            return st.none() | _values(kind.kind)
    raise AssertionError(kind)


def _scalars(kind: Scalar) -> st.SearchStrategy[object]:
    found: list[st.SearchStrategy[object]] = []
    for each in kind.types:
        if each is bool:
            found.append(st.booleans())
        elif each is int:
            found.append(st.integers(min_value=kind.least))
        elif each is float:
            found.append(st.floats(allow_nan=False))
        else:
            found.append(st.text(max_size=_LONGEST))
    return st.one_of(found)

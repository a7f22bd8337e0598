"""Draws canonical operators of any class from the types of their fields alone."""

from dataclasses import fields
from enum import Enum
from types import NoneType
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from dfcompile.lowering.operators.base import CanonicalOperator

_LONGEST = 4


def operators(operator: type[CanonicalOperator]) -> st.SearchStrategy[CanonicalOperator]:
    """Return operators of a class with any values that its fields can have."""
    hints = get_type_hints(operator, include_extras=True)
    return st.builds(operator, **{field.name: _values(hints[field.name]) for field in fields(operator)})


def _values(hint: object, least: int | None = None) -> st.SearchStrategy[object]:
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if origin is Annotated:
        return _values(arguments[0], arguments[1].least)
    if origin is Literal:
        return st.sampled_from(arguments)
    if NoneType in arguments:
        return st.none() | _values(arguments[0], least)
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(_values(arguments[0], least), max_size=_LONGEST).map(tuple)
    if origin is tuple:
        return st.tuples(*(_values(argument, least) for argument in arguments))
    scalars: dict[object, st.SearchStrategy[object]] = {
        bool: st.booleans(),
        int: st.integers(min_value=least),
        float: st.integers() | st.floats(allow_nan=False),
        str: st.text(max_size=_LONGEST),
    }
    return scalars[hint]

"""Makers of figures that give a multiple of what they should."""

import builtins
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import pytest
from msgspec import Struct, structs

from dfcompile.errors import VerificationError


def scaled(value: Any, factor: float) -> Any:
    """Return a number, each of several, or what a function, a method or a property gives, times a factor.

    Of an estimate, which has several figures, the cycles are.
    """
    match value:
        case bool():
            raise TypeError("a truth value has no double")
        case None:
            return None
        case int():
            return int(value * factor)
        case float():
            return value * factor
        case Fraction():
            return value * Fraction(factor)
        case tuple():
            return tuple(scaled(part, factor) for part in value)
        case list():
            return [scaled(part, factor) for part in value]
        case Struct():
            return structs.replace(value, cycles=scaled(value.cycles, factor))  # type: ignore[attr-defined]
        case property() | cached_property():
            get: Any = value.fget if isinstance(value, property) else value.func
            return property(lambda held: scaled(get(held), factor))
    return lambda *given, **named: scaled(value(*given, **named), factor)


def refused_when_scaled(
    audit: Callable[[], None], monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, factor: float
) -> None:
    """Assert that an audit refuses what is made while a member of a class or a module gives a multiple."""
    made = vars(owner).get(name) or getattr(builtins, name)
    monkeypatch.setattr(owner, name, scaled(made, factor), raising=False)

    with pytest.raises(VerificationError):
        audit()

"""Affine functions of loops: where something stands in an array."""

from collections.abc import Mapping
from typing import TypeAlias

Affine: TypeAlias = Mapping[str, int]  # factor of each loop and, under the empty name, the constant


def span(index: Affine, extents: Mapping[str, int]) -> tuple[int, int]:
    """Return the least and the largest value of an affine function of loops with these extents.

    >>> span({"i": 2, "j": -1, "": 3}, {"i": 4, "j": 2})
    (2, 9)
    """
    ends = [factor * (extents[name] - 1) for name, factor in index.items() if name]
    base = index.get("", 0)
    return base + sum(min(0, end) for end in ends), base + sum(max(0, end) for end in ends)


def affine_text(index: Affine, names: Mapping[str, str] | None = None) -> str:
    """Return an affine function as an expression.

    Args:
        index: the function.
        names: of loops that are called otherwise.

    >>> affine_text({"c": 35, "y": 7, "x": 1, "": -7}, {"x": "column"})
    '35*c + 7*y + column - 7'
    """
    names = names or {}
    terms = [(factor, names.get(name, name)) for name, factor in index.items() if name and factor]
    constant = index.get("", 0)
    signed = ((" - " if factor < 0 else " + ", abs(factor), name) for factor, name in terms)
    text = "".join(f"{sign}{name if factor == 1 else f'{factor}*{name}'}" for sign, factor, name in signed)
    if constant or not terms:
        text += f" {'-' if constant < 0 else '+'} {abs(constant)}"
    return text.removeprefix(" + ") if text.startswith(" + ") else f"-{text.removeprefix(' - ')}"

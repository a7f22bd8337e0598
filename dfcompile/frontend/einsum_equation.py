"""The equation of an Einsum: which label each dimension of operands and result has, and how many elements that is."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from dfcompile.errors import UserError

Labels: TypeAlias = tuple[str, ...]
_ELLIPSIS = "..."


class Equation(Struct, frozen=True):
    """An equation of operands, as far as their shapes are known.

    Attributes:
        terms: labels of each operand, one per dimension; what an ellipsis hides is numbered from the last dimension.
            None of an operand whose shape is not known.
        result: labels of the result.
        extents: by label. A dimension of extent 1 goes with any other one of its label, as in onnxruntime.
    """

    terms: tuple[Labels, ...]
    result: Labels
    extents: Mapping[str, int]


def read_equation(text: str, shapes: Sequence[Sequence[int] | None], name: Callable[[int], str]) -> Equation:
    """Return an equation with what its labels stand for.

    Args:
        text: such as ``bij,bjk->bik``.
        shapes: of the operands; None: not known.
        name: how an operand reads in errors.

    Raises:
        UserError: there are other operands than terms, an operand has other dimensions than labels, operands do not fit
            together, or the result has a label twice, or one of no operand.

    >>> read_equation("i...,i...", [(2, 3, 4), (2, 1, 4)], str)
    Equation(terms=(('i', '...1', '...0'), ('i', '...1', '...0')), result=('...1', '...0'), \
extents={'i': 2, '...1': 3, '...0': 4})
    """
    given, arrow, wanted = text.replace(" ", "").partition("->")
    sources = given.split(",")
    if len(sources) != len(shapes):
        raise UserError(f"equation of {len(sources)} terms against {len(shapes)} operands")
    found: dict[str, tuple[int, int]] = {}  # label -> extent, operand
    terms = []
    for position, (source, shape) in enumerate(zip(sources, shapes, strict=True)):
        labels = () if shape is None else _labels(source, len(shape) - len(source.replace(_ELLIPSIS, "")))
        if shape is not None and len(labels) != len(shape):
            dimensions = f"{name(position)} has {len(shape)} dimensions"
            raise UserError(f"{dimensions} against {len(labels)} labels of {source!r}")
        for label, extent in zip(labels, shape or (), strict=True):
            other, where = found.setdefault(label, (extent, position))
            if other == 1:
                found[label] = extent, position
            elif extent not in (1, other) and label.isalpha():
                raise UserError(f"label {label!r} is {other} in {name(where)} against {extent} in {name(position)}")
            elif extent not in (1, other):
                raise UserError(f"an ellipsis stands for {other} against {extent} (they do not broadcast)")
        terms.append(labels)
    once = [label for label in sorted(given) if label.isalpha() and given.count(label) == 1]
    hidden = sum(label.startswith(_ELLIPSIS) for label in found)
    result = _labels(wanted if arrow else "".join([_ELLIPSIS, *once]), hidden)
    if len(set(result)) != len(result) or not {*result} <= {*given, *found}:
        raise UserError(f"equation {text!r} has a label in the result twice, or one of no operand")
    return Equation(tuple(terms), result, {label: extent for label, (extent, _) in found.items()})


def _labels(term: str, hidden: int) -> Labels:
    before, ellipsis, after = term.partition(_ELLIPSIS)
    return (*before, *(f"{_ELLIPSIS}{number}" for number in reversed(range(hidden if ellipsis else 0))), *after)

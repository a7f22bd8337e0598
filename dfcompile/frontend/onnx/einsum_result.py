"""The shape that an Einsum gives: a dimension of extent 1 goes with any other one of its label, as in onnxruntime.

ONNX's inference takes the first extent of a label.
"""

from collections import Counter

import onnx

Shape = tuple[int, ...]
_ELLIPSIS = "..."


def einsum_result(node: onnx.NodeProto, operands: tuple[Shape | None, ...]) -> Shape | None:
    """Return the shape of a node's result; None if it is no Einsum, or its operands do not tell.

    Args:
        node: of any operator.
        operands: static shape of each of its inputs, None if it is not known.
    """
    if node.op_type != "Einsum" or None in operands:
        return None
    equation = next((entry.s.decode(errors="replace") for entry in node.attribute if entry.name == "equation"), "")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    extents: dict[str, int] = {}
    hidden: Shape = ()  # what the ellipsis stands for
    for term, shape in zip(terms, operands, strict=False):
        before, _, after = term.partition(_ELLIPSIS)
        rest = len(shape or ()) - len(before) - len(after)
        if shape is None or rest < 0 or (rest and _ELLIPSIS not in term):
            return None
        for label, extent in (*zip(before, shape, strict=False), *zip(after, shape[len(before) + rest :], strict=True)):
            extents[label] = _together(extents.get(label, 1), extent)
        hidden = _broadcast(hidden, shape[len(before) : len(before) + rest])
    result = right if arrow else _implied(terms)
    before, ellipsis, after = result.partition(_ELLIPSIS)
    if len(terms) != len(operands) or not set(before + after) <= set(extents):
        return None
    middle = hidden if ellipsis else ()
    return (*(extents[label] for label in before), *middle, *(extents[label] for label in after))


def _implied(terms: list[str]) -> str:
    """Return the result of an equation without one: what the ellipsis hides, then the labels that occur once."""
    counts = Counter("".join(terms).replace(".", ""))
    ellipsis = _ELLIPSIS if any(_ELLIPSIS in term for term in terms) else ""
    return ellipsis + "".join(sorted(label for label, count in counts.items() if count == 1))


def _broadcast(one: Shape, other: Shape) -> Shape:
    rank = max(len(one), len(other))
    padded = ((1,) * (rank - len(shape)) + shape for shape in (one, other))
    return tuple(_together(*pair) for pair in zip(*padded, strict=True))


def _together(one: int, other: int) -> int:
    return other if one == 1 else one

"""Nodes of matrix products."""

from collections.abc import Mapping, Sequence

from tests.fuzz.draw import Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def matrix_product(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype, inner = draw.dtype(op.dtypes()), draw.extent()
    batches = draw.operand_shapes(draw.shape(0, 2), 2)
    left = (*batches[0], draw.extent(), inner)
    right = (*batches[1], inner, draw.extent())
    if draw.chance(0.15):
        left = (inner,)
    if draw.chance(0.15):
        right = (inner,)
    return DrawnNode(
        [draw.array(dtype, left), draw.array(dtype, right)], {}, structure=(1,) if draw.chance(0.4) else ()
    )


def gemm(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    rows, inner, columns = (draw.extent() for _ in range(3))
    attributes: dict[str, AttributeValue] = {
        name: draw.integer(0, 1) for name in ("transA", "transB") if draw.chance(0.6)
    }
    for name in ("alpha", "beta"):
        if draw.chance(0.4):
            attributes[name] = draw.choice([0.0, 0.5, 2.0, -1.0, 1.0])
    left = (inner, rows) if attributes.get("transA") else (rows, inner)
    right = (columns, inner) if attributes.get("transB") else (inner, columns)
    operands = [draw.array(dtype, left), draw.array(dtype, right)]
    if draw.chance(0.7) or op.since < 11:
        shapes: Sequence[tuple[int, ...]] = [(rows, columns), (columns,), (1, columns), (rows, 1), (1,), ()]
        operands.append(draw.array(dtype, draw.choice(shapes)))
    return DrawnNode(operands, attributes, structure=(1, 2) if draw.chance(0.5) else ())


def einsum(op: OperatorVersion, draw: Draw) -> DrawnNode:
    letters = "abcd"
    sizes = {letter: draw.extent() or 1 for letter in letters}
    terms = ["".join(draw.some(letters, least=1)[:3]) for _ in range(draw.integer(1, 3))]
    used = sorted(set("".join(terms)))
    ellipsis = draw.shape(1, 1) if draw.chance(0.15) else ()
    dots = "..." if ellipsis else ""
    equation = ",".join(dots + term for term in terms)
    if draw.chance(0.8):
        equation += "->" + dots + "".join(draw.some(used))
    if draw.chance(0.2):
        equation = equation.replace(",", ", ").replace("->", " -> ")
    dtype = draw.dtype(op.dtypes())
    operands = [draw.array(dtype, (*ellipsis, *(sizes[letter] for letter in term))) for term in terms]
    return DrawnNode(operands, {"equation": equation})


GENERATORS: Mapping[str, Generator] = {"Einsum": einsum, "Gemm": gemm, "MatMul": matrix_product}

"""Loops of canonical operators: where each moves in operands and result, against every element that it touches."""

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import Digit, KernelLoop, LoopKind, LoopPart
from dfcompile.lowering.operators import (
    CanonicalOperator,
    Col2im,
    Concat,
    Convolution,
    Copy,
    Elementwise,
    Gather,
    Im2col,
    Lookup,
    LookupElements,
    MatMul,
    Pad,
    Reduce,
    Reduction,
    Sample,
    Scatter,
    TransposedConvolution,
    Update,
    Window,
)
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest, affine, kernel_loops
from dfcompile.lowering.tensor import Tensor
from tests.examples import examples

Shape = tuple[int, ...]


def loops_of(operator: CanonicalOperator, operands: Sequence[Shape], result: Shape) -> dict[str, KernelLoop]:
    views = [Tensor(f"x{number}", shape, "float32") for number, shape in enumerate(operands)]
    made = Tensor("y", result, "float32")
    operator.check(views, [made])
    nest = operator.loop_nest(views, made)
    assert nest is not None
    return {loop.name: loop for loop in kernel_loops(nest, operands, result)}


def strides(loop: KernelLoop) -> tuple[int | None, ...]:
    """Return the stride of a loop in each operand, then in the result."""
    return tuple(None if digit is None else digit.stride for digit in (*loop.inputs, *loop.outputs))


CASES: list[tuple[CanonicalOperator, list[Shape], Shape, dict[str, tuple[int | None, ...]]]] = [
    (Elementwise("a + b"), [(2, 3, 4), (3, 1)], (2, 3, 4), {"i0": (12, None, 12), "i1": (4, 1, 4), "i2": (1, None, 1)}),
    (Elementwise("a * b", ((0, 1), (0,))), [(3, 4), (3,)], (3, 4), {"i0": (4, 1, 4), "i1": (1, None, 1)}),
    (Elementwise("a + b", ((0, 1), (1,)), ((2, 3), (0,))), [(4, 6), (3,)], (2, 3),
     {"i0": (6, None, 3), "i1": (1, 1, 1)}),
    (MatMul(), [(5, 2, 3), (3, 4)], (5, 2, 4),
     {"b0": (6, None, 8), "row": (3, None, 4), "column": (None, 1, 1), "k": (1, 4, None)}),
    (MatMul(transpose_a=True, transpose_b=True), [(3, 2), (4, 3)], (2, 4),
     {"row": (1, None, 4), "column": (None, 3, 1), "k": (2, 1, None)}),
    (Reduce(Reduction.SUM, (1,)), [(2, 3, 4)], (2, 1, 4), {"i0": (12, 4), "i1": (4, None), "i2": (1, 1)}),
    (Reduce(Reduction.MAX, (0,), keepdims=False), [(2, 3)], (3,), {"i0": (3, None), "i1": (1, 1)}),
    (Copy(read=("i1", "i0")), [(2, 3)], (3, 2), {"i0": (1, 2), "i1": (3, 1)}),
    (Copy((2, 3, 4), ("i0", "4*i1 + i2"), ("3*i0 + i1", "i2")), [(2, 12)], (6, 4),
     {"i0": (12, 12), "i1": (4, 4), "i2": (1, 1)}),
    (Copy((2, 3), ("i0", "i1 + 1"), ("i0", "i1")), [(2, 4)], (2, 3), {"i0": (4, 3), "i1": (None, 1)}),
    (Copy((4,), ("3 - i0",), ("i0",)), [(4,)], (4,), {"i0": (None, 1)}),
    (Gather(0, ((1, 1, 2), (0, 1, 1))), [(4, 5)], (3, 5), {"i0": (None, 5), "i1": (1, 1)}),
    (Lookup(0), [(7, 4), (2, 3)], (2, 3, 4), {"i0": (None, 3, 12), "i1": (None, 1, 4), "i2": (1, None, 1)}),
    (LookupElements(1), [(3, 5), (3, 4)], (3, 4), {"i0": (5, 4, 4), "i1": (None, 1, 1)}),
    (Sample(), [(2, 3, 5, 4), (2, 6, 2), (2, 6, 2)], (2, 3, 6, 4),
     {"b": (60, 12, 12, 72), "c": (20, None, None, 24), "p": (None, 2, 2, 4), "r": (1, None, None, 1),
      "t": (None, 1, 1, None)}),
    (Sample(), [(2, 3, 5, 4), (1, 6, 2)], (2, 3, 6, 4),
     {"b": (60, None, 72), "c": (20, None, 24), "p": (None, 2, 4), "r": (1, None, 1), "t": (None, 1, None)}),
    (Update(1, (0, 1)), [(3, 5), (3, 2), (3, 2)], (3, 5), {"i0": (5, 2, 2, 5)}),
    (Update(0, (0,), Reduction.SUM), [(6, 4), (3,), (3, 4)], (6, 4), {"i1": (1, None, 1, 1)}),
    (Update(2, (0, 2)), [(2, 3, 5, 4), (2, 2), (2, 3, 2, 4)], (2, 3, 5, 4),
     {"i0": (60, 2, 24, 60), "i1": (20, None, 8, 20), "i3": (1, None, 1, 1)}),
    (Scatter(0, ((1, 2, 2),)), [(4, 5), (2, 5)], (4, 5), {"i1": (1, 1, 1)}),
    (Col2im((2,), (1,)), [(2, 3, 2, 4)], (2, 3, 8), {"b": (24, 24), "c": (8, 8)}),
    (Concat(1), [(2, 3), (2, 5)], (2, 8), {"i0": (3, 5, 8)}),
    (Pad((0, 1, 0, 1)), [(2, 3)], (2, 5), {"i0": (3, 5)}),
    (Window(Reduction.MAX, (2, 2), (2, 2), (1, 1)), [(1, 3, 4, 4)], (1, 3, 2, 2),
     {"c": (16, 4), "y0": (8, 2), "y1": (2, 1), "k0": (4, None), "k1": (1, None)}),
    (Window(Reduction.SUM, (2,), (2,), (1,)), [(1, 1, 5)], (1, 1, 2),  # no window has any of the last element
     {"y0": (None, 1), "k0": (None, None)}),
    (Window(Reduction.SUM, (3,), (1,), (1,)), [(1, 3, 6)], (1, 3, 4),
     {"c": (6, 4), "y0": (None, 1), "k0": (None, None)}),
    (Im2col((2,), (1,), (1,), (3,), group=2), [(2, 4, 4)], (2, 4, 6),
     {"b": (16, 3), "g": (8, 24), "c": (4, 12), "k0": (None, 6), "y0": (None, 1)}),
    (Convolution((1,), (1,), group=2), [(2, 4, 5), (6, 2, 3)], (2, 6, 3),
     {"b": (20, None, 18), "g": (10, 18, 9), "o": (None, 6, 3), "c": (5, 3, None), "k0": (None, 1, None),
      "y0": (None, None, 1)}),
    (TransposedConvolution((2,), (1,), group=2), [(2, 4, 3), (4, 5, 2)], (2, 10, 6),
     {"b": (12, None, 60), "g": (6, 20, 30), "o": (None, 2, 6), "c": (3, 10, None)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "operands", "result", "expected"), CASES, ids=[str(case[0])[:40] for case in CASES]
)
def test_where_loops_move(
    operator: CanonicalOperator,
    operands: list[Shape],
    result: Shape,
    expected: Mapping[str, tuple[int | None, ...]],
) -> None:
    found = loops_of(operator, operands, result)

    assert {name: strides(loop) for name, loop in found.items()} == expected
    for loop in found.values():
        assert (loop.kind is LoopKind.PARALLEL) is (None not in loop.outputs)


def test_loops_are_of_the_kernels_dimensions() -> None:
    parts = {name: loop.part for name, loop in loops_of(MatMul(), [(5, 1, 2, 3), (1, 6, 3, 4)], (5, 6, 2, 4)).items()}

    assert parts == {
        "b0": LoopPart.M, "b1": LoopPart.N, "row": LoopPart.M, "column": LoopPart.N, "k": LoopPart.K,
    }  # fmt: skip
    assert loops_of(MatMul(), [(5, 2, 3), (5, 3, 4)], (5, 2, 4))["b0"].part is LoopPart.OUTER
    assert loops_of(Reduce(Reduction.MAX, (0,)), [(2, 3)], (1, 3))["i0"].kind is LoopKind.MAX


@examples(150)
@given(st.integers(0, 2**40))
def test_an_iteration_touches_only_elements_with_its_digit(seed: int) -> None:
    """Indices are any affine functions; a loop of the result that may be split has each element in one iteration."""
    rng = random.Random(seed)
    names = [f"i{number}" for number in range(rng.randint(1, 3))]
    extents = {name: rng.randint(1, 4) for name in names}
    shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 2)))
    factors = [[rng.choice([0, 0, 1, 1, 2, 3, -1]) for _ in names] for _ in shape]
    index = tuple(
        " + ".join([f"{rng.randint(0, 2)}", *(f"{factor}*{name}" for factor, name in zip(row, names, strict=True))])
        for row in factors
    )
    nest = LoopNest({name: Loop(extent) for name, extent in extents.items()}, (index,), index)
    for loop in kernel_loops(nest, [shape], shape):
        (digit,) = loop.outputs
        assert digit is not None
        for values in product(*(range(extents[name]) for name in names)):
            at = dict(zip(names, values, strict=True))
            offset = 0
            for extent, text in zip(shape, index, strict=True):
                terms = affine(text)
                assert terms is not None
                offset = offset * extent + terms.get("", 0) + sum(at[name] * terms.get(name, 0) for name in names)
            if 0 <= offset < prod(shape):
                assert offset // digit.stride % loop.extent == at[loop.name]


def test_what_is_not_affine_is_not_followed() -> None:
    assert affine("i0 // 2") is None
    assert affine("i0 * i1") is None
    assert affine("2*(i0 + 3) - i1") == {"i0": 2, "": 6, "i1": -1}
    nest = LoopNest({"i0": Loop(4)}, (("i0 // 2",),), ("i0",))
    (loop,) = kernel_loops(nest, [(2,)], (4,))

    assert loop.inputs == (None,)
    assert loop.outputs == (Digit(1, 0),)


def test_an_operator_that_says_nothing_has_no_loops() -> None:
    assert CanonicalOperator.loop_nest(MatMul(), [], Tensor("y", (1,), "float32")) is None

"""Operators of models: attention in one pass against walks, rows, what is held, equal shapes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.io_bounds.curve import Rules, front, least, total
from dfcompile.io_bounds.einsum.plain import Attention, attention_curve, gemm
from dfcompile.io_bounds.operators import BoundedOperator, Operand, Rows
from tests.examples import examples
from tests.unit.io_bounds.walks import front as front_of

RULES = Rules()
sizes = st.integers(1, 6)


def rows_stay(shape: Attention, tile: int, block: int) -> tuple[int, int]:
    """Count words tile by tile: rows stay while all blocks of keys and values pass."""
    moved = 0
    for start in range(0, shape.rows, tile):
        part = min(tile, shape.rows - start)
        moved += part * (shape.width + shape.value_width)
        for key in range(0, shape.keys, block):
            moved += min(block, shape.keys - key) * (shape.width + shape.value_width)
    return held(shape, tile, block), moved


def keys_stay(shape: Attention, tile: int, block: int) -> tuple[int, int]:
    """Count words tile by tile: a block of keys and values stays while all rows pass."""
    moved = 0
    for key in range(0, shape.keys, block):
        moved += min(block, shape.keys - key) * (shape.width + shape.value_width)
        for start in range(0, shape.rows, tile):
            part = min(tile, shape.rows - start)
            moved += part * (shape.width + shape.value_width)
            if key:
                moved += part * (shape.value_width + 2)  # read again, with the largest score and the sum
            if key + block < shape.keys:
                moved += part * 2  # written for the next block
    return held(shape, tile, block), moved


def held(shape: Attention, tile: int, block: int) -> int:
    return (tile + block) * (shape.width + shape.value_width) + block + 2 * tile


@given(sizes, sizes, sizes, sizes)
@examples(300)
def test_attention_has_the_points_of_its_two_orders(rows: int, keys: int, width: int, value_width: int) -> None:
    shape = Attention(rows, keys, width, value_width)
    found = [
        walk(shape, tile, block)
        for walk in (rows_stay, keys_stay)
        for tile in range(1, rows + 1)
        for block in range(1, keys + 1)
    ]
    curve = attention_curve(shape, RULES)

    assert list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True)) == front_of(found)
    assert curve.least_traffic == sum(shape.words)


def softmax(row: int, rows: int) -> BoundedOperator:
    operand, result = Operand("x", row * rows), Operand("y", row * rows)
    return BoundedOperator("softmax", "Softmax", 1, Rows(row, passes=2), (operand,), (result,), 4)


def test_a_softmax_reads_twice_unless_a_row_fits() -> None:
    curve = softmax(16, 8).curve(RULES)

    assert curve.sizes.tolist() == [4, 19]
    assert curve.traffic.tolist() == [3 * 128, 2 * 128]
    assert softmax(16, 8).curve(RULES, frozenset({"x"})).traffic.tolist() == [128]
    assert softmax(16, 8).curve(RULES, frozenset({"x", "y"})).traffic.tolist() == [0]


def test_a_softmax_of_two_keeps_its_figures_where_results_come() -> None:
    curve = softmax(2, 1).curve(RULES)

    assert curve.sizes.tolist() == [4]  # operands and results; row by row five words would move as much
    assert curve.traffic.tolist() == [4]


def test_an_operand_that_is_held_does_not_move() -> None:
    op = BoundedOperator("fc", "Gemm", 2, gemm(4, 5, 6), (Operand("x", 40), Operand("w", 60)), (Operand("y", 48),), 4)

    assert op.curve(RULES).least_traffic == op.compulsory_words == 148
    assert op.curve(RULES, frozenset({"x", "y"})).traffic.tolist() == [60]
    assert op.curve(RULES, frozenset({"x", "y"})).sizes.tolist() == [1]
    assert op.curve(RULES, frozenset({"x", "w", "y"})).traffic.tolist() == [0]


def test_equal_shapes_are_computed_once() -> None:
    first, second = (
        BoundedOperator(name, "Gemm", 1, gemm(3, 4, 5), (Operand(f"{name}x", 12), Operand(f"{name}w", 20)),
                        (Operand(f"{name}y", 15),), 4)
        for name in ("a", "b")
    )  # fmt: skip

    assert first.curve(RULES) is second.curve(RULES)


columns = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=20)


@given(st.lists(columns, min_size=1, max_size=4), st.integers(0, 60))
@examples(200)
def test_curves_add_up_and_join_step_by_step(points: list[list[tuple[int, int]]], size: int) -> None:
    curves = [front(*np.array(rows, dtype=np.int64).T) for rows in points]
    values = [min((moved for taken, moved in rows if taken <= size), default=None) for rows in points]
    known = [value for value in values if value is not None]

    assert [curve.at(size) for curve in curves] == values
    assert least(curves).at(size) == min(known, default=None)
    assert total(curves).at(size) == (sum(known) if len(known) == len(values) else None)

"""Proofs of whole models lie below every plan, and above what moves anyway."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.io_bounds.einsum.plain import Attention, attention_curve
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.fusion.chain import Fusion, chain_curve
from dfcompile.io_bounds.fusion.proved_model import attention_curves, attention_model, chain_model, proved_model_bytes
from dfcompile.io_bounds.fusion.residency import least_residency
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.io_bounds.proved import Passing
from tests.examples import examples
from tests.unit.io_bounds.fusion.test_residency import models

RULES = Rules()


@given(st.integers(1, 30), st.lists(st.integers(1, 30), min_size=2, max_size=4), st.sampled_from(Fusion))
@examples(100)
def test_no_chain_is_below_the_proof(rows: int, widths: list[int], fusion: Fusion) -> None:
    model = chain_model(rows, widths, 2)
    curve = chain_curve(rows, widths, RULES, fusion)
    for size, traffic in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
        proved = proved_model_bytes(model, size * 2)

        assert model.compulsory_bytes <= proved <= traffic * 2


@given(st.integers(1, 4), *(st.integers(1, 20) for _ in range(4)))
@examples(100)
def test_no_attention_is_below_the_proof(groups: int, rows: int, keys: int, width: int, value_width: int) -> None:
    shape = Attention(rows, keys, width, value_width)
    model = attention_model(groups, shape, 1)
    one_pass = BoundedOperator(
        "attention", "Attention", groups, shape,
        tuple(Operand(name, groups * words) for name, words in zip("qkv", shape.words[:3], strict=True)),
        (Operand("o", groups * shape.words[3]),), 1,
    )  # fmt: skip
    for curve in attention_curves(groups, shape, RULES).values():
        for size, traffic in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
            assert max(proved_model_bytes(model, size), one_pass.proved(size)) <= traffic


@given(models(), st.integers(6, 300))
@examples(200)
def test_no_plan_of_a_graph_is_below_the_proof(model: BoundedModel, size: int) -> None:
    assume(all(op.curve(RULES).least_size * op.element_bytes <= size for op in model.operators))
    plan = least_residency(model, size, RULES)

    assert model.compulsory_bytes <= proved_model_bytes(model, size) <= plan.traffic_bytes


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.data())
@examples(200)
def test_segments_have_no_more_products_than_is_said(m: int, k: int, n: int, data: st.DataObject) -> None:
    """Sets of products of a small product of matrices, and the words that they need to enter or leave."""
    whole = [(a, b, c) for a in range(m) for b in range(k) for c in range(n)]
    done = set(data.draw(st.lists(st.sampled_from(whole), unique=True, min_size=1)))
    left, right = {(a, b) for a, b, _ in done}, {(b, c) for _, b, c in done}
    results = {(a, c) for a, _, c in done}
    made = {(a, c) for a, c in results if all((a, b, c) in done for b in range(k))}
    passing = Passing(m * k * n, 1, k, (m * k, k * n, m * n))

    assert passing.results_within(len(left) + len(right), (0, 0)) >= len(made)
    assert passing.most_products(len(left) + len(right) + len(results - made), (0, 0)) >= len(done)
    # An operand may be made within the segment itself, and does not enter then.
    assert passing.most_products(len(right) + len(results - made), (len(left), 0)) >= len(done)


def test_small_buffers_move_more_than_each_word_once() -> None:
    """The proof of a chain of large layers grows as the buffer falls, though nothing between layers need move."""
    widths = (1024, 4096, 1024)
    model = chain_model(1024, widths, 1)
    found = [proved_model_bytes(model, size) for size in (2**10, 2**12, 2**14)]

    assert model.compulsory_bytes == 2 * 1024**2 + sum(a * b for a, b in pairwise(widths))
    assert found[0] > 1.9 * found[1] > 3.6 * found[2] > 3.6 * model.compulsory_bytes


def test_attention_moves_more_by_the_square_of_its_width_over_the_buffer() -> None:
    """What [dao22] does is within a constant of what is proved, where the buffer is larger than the width squared."""
    shape = Attention(2**14, 2**14, 64, 64)
    model = attention_model(1, shape, 1)
    sizes = [2**power for power in (13, 14, 15)]
    curve = attention_curve(shape, RULES)
    ratios = [(curve.at(size) or 0) / proved_model_bytes(model, size) for size in sizes]

    assert proved_model_bytes(model, 2**13) > 4 * model.compulsory_bytes
    assert max(ratios) < 24


@pytest.mark.parametrize("padding", [0, 1])
def test_the_depth_of_a_padded_window_is_that_of_its_poorest_result(padding: int) -> None:
    axis = WindowAxis(8, 3, 1, 1, padding, 8 + 2 - 2 * padding)
    shape = Convolution(1, 1, 5, 4, (axis, axis))

    assert shape.depth == 5 * (3 - padding) ** 2
    assert convolution_curve(shape, RULES).least_traffic == shape.contracted.compulsory_words

"""Chains against walks over every template, tile and set of held weights, and beside the tool's figures."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.bounds.curve import Curve
from dfcompile.bounds.einsum.plain import plain_curve
from dfcompile.bounds.einsum.products import gemm
from dfcompile.bounds.fusion.chain import chain_curve, segment_curve
from dfcompile.bounds.fusion.residency import least_residency
from dfcompile.bounds.operators import BoundedModel, BoundedOperator, BoundedTensor, Operand
from dfcompile.bounds.tilings import Rules
from dfcompile.canonical_dag import TensorRole
from dfcompile.errors import UserError
from tests.examples import examples
from tests.unit.bounds.published_curves import FOLDER
from tests.unit.bounds.walks import front

RULES = Rules()
Point = tuple[int, int]


class Buffer:
    """Words that are present, how many there were at most, and how many moved."""

    def __init__(self) -> None:
        self.present: set[tuple[object, ...]] = set()
        self.written: set[tuple[object, ...]] = set()
        self.most = self.moved = 0

    def load(self, *words: tuple[object, ...]) -> None:
        new = set(words) - self.present
        self.moved += len(new)
        self.make(*words)

    def make(self, *words: tuple[object, ...]) -> None:
        self.present |= set(words)
        self.most = max(self.most, len(self.present))

    def store(self, *words: tuple[object, ...]) -> None:
        assert set(words) <= self.present
        self.moved += len(words)
        self.written |= set(words)

    def drop(self, *words: tuple[object, ...]) -> None:
        self.present -= set(words)


class RowTiles:
    """A walk over row tiles: stage after stage, weights held or word by word."""

    def __init__(self, rows: int, widths: Sequence[int], held: Sequence[bool]) -> None:
        self.rows, self.widths, self.held, self.buffer = rows, widths, held, Buffer()
        for layer, is_held in enumerate(held):
            if is_held:
                self.buffer.load(*(("w", layer, k, n) for k in range(widths[layer]) for n in range(widths[layer + 1])))

    def run(self, stages: Sequence[Sequence[int]], tile: int) -> Point:
        for start in range(0, self.rows, tile):
            part = range(start, min(start + tile, self.rows))
            for stage in stages:
                if len(stage) == 1:
                    self.one(stage[0], part)
                else:
                    self.two(stage[0], part)
        assert len(self.buffer.written) == self.rows * self.widths[-1]
        return self.buffer.most, self.buffer.moved

    def multiply(self, layer: int, k: int, n: int, part: range) -> None:
        assert {(layer, row, k) for row in part} <= self.buffer.present
        if not self.held[layer]:
            self.buffer.load(("w", layer, k, n))
        self.buffer.make(*((layer + 1, row, n) for row in part))
        if not self.held[layer]:
            self.buffer.drop(("w", layer, k, n))

    def column(self, tensor: int, number: int, part: range) -> list[tuple[object, ...]]:
        return [(tensor, row, number) for row in part]

    def whole(self, tensor: int, part: range) -> list[tuple[object, ...]]:
        return [word for number in range(self.widths[tensor]) for word in self.column(tensor, number, part)]

    def one(self, layer: int, part: range) -> None:
        is_last = layer == len(self.widths) - 2
        pairs = [(k, n) for k in range(self.widths[layer]) for n in range(self.widths[layer + 1])]
        for k, n in sorted(pairs, key=lambda pair: pair[1]) if is_last else pairs:
            if layer == 0:
                self.buffer.load(*self.column(0, k, part))
            self.multiply(layer, k, n, part)
            if layer == 0 and n == self.widths[1] - 1:
                self.buffer.drop(*self.column(0, k, part))
            if is_last and k == self.widths[layer] - 1:
                self.buffer.store(*self.column(layer + 1, n, part))
                self.buffer.drop(*self.column(layer + 1, n, part))
        self.buffer.drop(*self.whole(layer, part))

    def two(self, layer: int, part: range) -> None:
        if layer == 0:
            self.buffer.load(*self.whole(0, part))
        for column in range(self.widths[layer + 1]):
            for k in range(self.widths[layer]):
                self.multiply(layer, k, column, part)
            for n in range(self.widths[layer + 2]):
                self.multiply(layer + 1, column, n, part)
            self.buffer.drop(*self.column(layer + 1, column, part))
        if layer + 2 == len(self.widths) - 1:
            self.buffer.store(*self.whole(layer + 2, part))
            self.buffer.drop(*self.whole(layer + 2, part))
        self.buffer.drop(*self.whole(layer, part))


def stages_of(layers: Sequence[int]) -> Iterator[list[list[int]]]:
    if not layers:
        yield []
    for count in (1, 2):
        if count <= len(layers):
            yield from ([list(layers[:count]), *rest] for rest in stages_of(layers[count:]))


def rows_inside(rows: int, widths: Sequence[int], cut: int) -> Point:
    """Walk over slices of the middle outside, rows inside."""
    buffer = Buffer()
    wide, middle, narrow = widths
    for start in range(0, middle, cut):
        part = range(start, min(start + cut, middle))
        weights = [("w", 0, k, c) for k in range(wide) for c in part]
        weights += [("w", 1, c, n) for c in part for n in range(narrow)]
        buffer.load(*weights)
        for row in range(rows):
            for k in range(wide):
                buffer.load((0, row, k))
                buffer.make(*((1, row, c) for c in part))
                buffer.drop((0, row, k))
            for n in range(narrow):
                if start:
                    buffer.load((2, row, n))
                buffer.make((2, row, n))
                buffer.store((2, row, n))
                buffer.drop((2, row, n))
            buffer.drop(*((1, row, c) for c in part))
        buffer.drop(*weights)
    return buffer.most, buffer.moved


def segment_points(rows: int, widths: Sequence[int]) -> Iterator[Point]:
    if len(widths) == 2:
        curve = plain_curve(gemm(rows, *widths), RULES)
        yield from zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True)
        return
    layers = len(widths) - 1
    for stages in stages_of(range(layers)):
        for held in product((False, True), repeat=layers):
            yield from (RowTiles(rows, widths, held).run(stages, tile) for tile in range(1, rows + 1))
    if len(widths) == 3:
        for cut in range(1, widths[1] + 1):
            yield rows_inside(rows, widths, cut)


def at(points: Sequence[Point], size: int) -> int | None:
    return min((moved for taken, moved in points if taken <= size), default=None)


def of(curve: Curve) -> list[Point]:
    return list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True))


@given(st.integers(1, 4), st.lists(st.integers(1, 3), min_size=2, max_size=4))
@examples(60)
def test_segments_have_the_points_of_their_walks(rows: int, widths: list[int]) -> None:
    assert of(segment_curve(rows, widths, RULES)) == front(list(segment_points(rows, widths)))


@given(st.integers(1, 3), st.lists(st.integers(1, 3), min_size=3, max_size=4))
@examples(60)
def test_chains_are_the_least_over_all_cuts(rows: int, widths: list[int]) -> None:
    curve, layers = chain_curve(rows, widths, RULES), len(widths) - 1
    known: dict[tuple[int, ...], list[Point]] = {}
    for size in range(1, 40):
        found = []
        for cuts in product((False, True), repeat=layers - 1):
            ends = [0, *(place + 1 for place, is_cut in enumerate(cuts) if is_cut), layers]
            parts = []
            for first, last in pairwise(ends):
                part = tuple(widths[first : last + 1])
                if part not in known:
                    known[part] = list(segment_points(rows, part))
                parts.append(at(known[part], size))
            if None not in parts:
                found.append(sum(part for part in parts if part is not None))

        assert curve.at(size) == min(found, default=None)


def published(name: str) -> list[Point]:
    """A front of the tool in words; its sizes are bytes of two-byte words."""
    rows = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1)
    return [(int(size) // 2, int(moved)) for size, moved in rows.tolist()]


def chain_model(rows: int, widths: Sequence[int]) -> BoundedModel:
    tensors = [BoundedTensor("t0", rows * widths[0], 1, TensorRole.INPUT)]
    operators = []
    for layer, (k, n) in enumerate(pairwise(widths)):
        is_last = layer == len(widths) - 2
        tensors.append(BoundedTensor(f"w{layer}", k * n, 1, TensorRole.PARAMETER))
        role = TensorRole.OUTPUT if is_last else TensorRole.INTERMEDIATE
        tensors.append(BoundedTensor(f"t{layer + 1}", rows * n, 1, role))
        reads = (Operand(f"t{layer}", rows * k), Operand(f"w{layer}", k * n))
        writes = (Operand(f"t{layer + 1}", rows * n),)
        operators.append(BoundedOperator(f"l{layer}", "product", 1, gemm(rows, k, n), reads, writes, 1))
    return BoundedModel("chain", tuple(operators), tuple(tensors))


def test_the_tool_reads_a_tensor_for_nothing_that_was_written_out() -> None:
    """Its layers choose by themselves what is fused; at 801 words no agreeing choice comes near its figure."""
    tool = at(published("ffn3_untiled"), 801)
    plan = least_residency(chain_model(32, (8, 24, 16, 8)), 801, RULES)

    assert tool == 1728
    assert plan.is_exact
    assert plan.traffic_bytes == 2240
    assert plan.traffic_bytes / tool == pytest.approx(1.30, abs=0.005)


def test_the_tool_prunes_what_would_have_been_best() -> None:
    """Its flash chains of three layers, and what is left where nothing is dropped before layers are joined."""
    size, moved = published("ffn3_tiled_flash")[0]
    ours = chain_curve(32, (8, 24, 16, 8), RULES).at(size)

    assert ours is not None
    assert moved >= 2.5 * ours


def test_the_tool_counts_the_weights_of_one_layer_where_two_stay() -> None:
    """With rows inside both slices of weights must stay; it takes the larger layer alone."""
    size, moved = 424, 6656
    assert (size, moved) in published("ffn2_tiled_flash")
    taken, least = rows_inside(64, (16, 48, 16), 24)

    assert least == moved
    assert taken == 793
    assert chain_curve(64, (16, 48, 16), RULES).size_within(moved) == 727


def test_a_chain_that_is_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="found 13 layers against 1 to 12"):
        chain_curve(4, [2] * 14, RULES)

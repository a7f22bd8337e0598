"""What is said of a shape of the command line is the least of all its tilings, walked over, at every buffer size."""

from collections.abc import Iterator
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.api.bound_traffic import bounds_of
from dfcompile.io_bounds.curve import Halo, Rules, Tiles
from dfcompile.options.commands import BoundsOptions
from dfcompile.records import replace
from dfcompile.report.traffic_bounds import BoundRow
from tests.examples import examples
from tests.unit.io_bounds.walks import Walked, WalkedTensor, points

MOST_MACS = 72  # of what is walked over
BEYOND = 3  # words above the largest tiling


def product(rows: int, k: int, n: int) -> Walked:
    """``A[rows, k] B[k, n] -> C[rows, n]``."""

    def tensor(first: int, second: int, *, is_result: bool = False) -> WalkedTensor:
        axes = tuple({first: 0, second: 1}.get(rank, -1) for rank in range(3))
        shape = (rows, k, n)[first], (rows, k, n)[second]
        return WalkedTensor(lambda ranges: (ranges[first], ranges[second]), shape, tuple, axes, is_result=is_result)

    return Walked((rows, k, n), (tensor(0, 1), tensor(1, 2), tensor(0, 2, is_result=True)))


def line_convolution(extents: tuple[int, int, int, int], step: tuple[int, int, int]) -> Walked:
    """``I[c, p * stride + r * dilation - pad] W[c, k, r] -> O[k, p]``, ranks c, k, p, r."""
    (channels, filters, outputs, taps), (stride, dilation, pad) = extents, step
    size = (outputs - 1) * stride + (taps - 1) * dilation + 1 - 2 * pad

    def window(ranges: list[range]) -> tuple[range, ...]:
        _, _, out, tap = ranges
        start = out.start * stride + tap.start * dilation - pad
        return ranges[0], range(start, (out.stop - 1) * stride + (tap.stop - 1) * dilation - pad + 1)

    def steps(tiling: list[int]) -> tuple[int, ...]:
        return (*tiling[:2], tiling[2] * stride, tiling[3] * dilation)

    return Walked(
        (channels, filters, outputs, taps),
        (
            WalkedTensor(window, (channels, size), steps, (0, -1, 1, 1)),  # type: ignore[arg-type]
            WalkedTensor(lambda r: (r[0], r[1], r[3]), (channels, filters, taps), tuple, (0, 1, -1, 2)),
            WalkedTensor(lambda r: (r[1], r[2]), (filters, outputs), tuple, (-1, 0, 1, -1), is_result=True),
        ),
    )


def rows_of(shape: BoundsOptions, sizes: range, word_bytes: int, rules: Rules | None = None) -> tuple[BoundRow, ...]:
    rules = rules or Rules()
    first_read = not rules.elides_first_read
    counted = replace(shape, word=word_bytes, tiles=rules.tiles, halo=rules.halo, first_read=first_read)
    return bounds_of(replace(counted, buffers=tuple(sizes))).operators


def check(shape: BoundsOptions, count: int, walked: Walked, rules: Rules, word_bytes: int) -> None:
    """Compare at every buffer size, in bytes, also between whole words."""
    found = list(points(walked, rules))
    sizes = range(3 * word_bytes, (max(size for size, _, _ in found) + BEYOND) * word_bytes)
    least = {
        size: min((moved for words, moved, _ in found if words * word_bytes <= size), default=None) for size in sizes
    }

    for row in rows_of(shape, sizes, word_bytes, rules):
        expected = least[row.buffer_bytes]
        assert row.tiling_bytes == (None if expected is None else count * expected * word_bytes)
        assert row.tiling_bytes is None or row.compulsory_bytes <= row.proved_bytes <= row.tiling_bytes


rules = st.builds(Rules, st.sampled_from(Tiles), st.just(Halo.TRUE), st.booleans())
sizes = st.integers(1, 7)
words = st.integers(1, 4)


@given(sizes, sizes, sizes, rules, words)
@examples(60)
def test_a_product(m: int, k: int, n: int, rules: Rules, word_bytes: int) -> None:
    assume(m * k * n <= MOST_MACS)

    check(BoundsOptions(gemm=(f"{m},{k},{n}",)), 1, product(m, k, n), rules, word_bytes)


def sharing(heads: int) -> Iterator[tuple[str, int]]:
    """Yield the words that say how many heads share B, and how many groups do not."""
    yield "", heads
    yield ",shared", 1
    yield from ((f",groups={groups}", groups) for groups in range(1, heads + 1) if heads % groups == 0)


@given(st.integers(1, 5), st.integers(1, 5), sizes, st.integers(1, 3), st.data(), rules, words)
@examples(100)
def test_heads(heads: int, m: int, k: int, n: int, data: st.DataObject, rules: Rules, word_bytes: int) -> None:
    said, groups = data.draw(st.sampled_from(list(sharing(heads))))
    rows = heads // groups * m  # of one product: all that share B
    assume(rows * k * n <= MOST_MACS)

    check(BoundsOptions(bmm=(f"{heads},{m},{k},{n}{said}",)), groups, product(rows, k, n), rules, word_bytes)


@given(
    st.tuples(*(st.integers(1, most) for most in (2, 3, 3, 6, 3))),
    st.tuples(*(st.integers(1, 3) for _ in range(2)), st.integers(0, 1)),
    st.sampled_from(Halo),
    rules,
    words,
)
@examples(100)
def test_convolutions_of_groups(
    shape: tuple[int, ...], step: tuple[int, int, int], halo: Halo, rules: Rules, word_bytes: int
) -> None:
    groups, channels, filters, outputs, taps = shape
    stride, dilation, pad = step
    assume(prod(shape[1:]) <= MOST_MACS)
    assume(2 * pad < (outputs - 1) * stride + (taps - 1) * dilation + 1)
    assume(halo is Halo.TRUE or not pad)  # the tool knows no padding
    is_product = halo is Halo.TRUE and taps == 1 and not pad
    walked = (
        product(outputs, channels, filters)
        if is_product
        else line_convolution((channels, filters, outputs, taps), step)
    )
    text = f"{groups * channels},{groups * filters},{outputs},{taps},stride={stride},dilation={dilation},pad={pad}"

    counted = Rules(rules.tiles, halo, rules.elides_first_read)
    check(BoundsOptions(conv=(f"{text},groups={groups}",)), groups, walked, counted, word_bytes)


@pytest.mark.parametrize(
    ("shape", "count", "same"),
    [
        (BoundsOptions(bmm=("4,4,7,5,groups=2",)), 2, "8,7,5"),
        (BoundsOptions(bmm=("4,4,7,5,shared",)), 1, "16,7,5"),
        (BoundsOptions(bmm=("4,4,7,5",)), 4, "4,7,5"),
        (BoundsOptions(conv=("7,5,3x3,1x1,batch=2",)), 1, "18,7,5"),
        (BoundsOptions(conv=("14,10,3x3,1x1,stride=2,groups=2",)), 2, "9,7,5"),
    ],
)
def test_what_is_one_product_moves_as_much(shape: BoundsOptions, count: int, same: str) -> None:
    rows, products = (rows_of(asked, range(3, 300), 1) for asked in (shape, BoundsOptions(gemm=(same,))))

    assert [row.tiling_bytes for row in rows] == [count * (row.tiling_bytes or 0) for row in products]


def test_rows_of_all_heads_of_a_group_are_rows_of_one_product() -> None:
    (row,) = rows_of(BoundsOptions(bmm=("4,4,7,5,groups=2",)), range(7, 8), 1)

    assert row.tiling_bytes == 850
    assert row.tiling.startswith("M=3 K=1 N=1")  # three rows, of two heads where that is so

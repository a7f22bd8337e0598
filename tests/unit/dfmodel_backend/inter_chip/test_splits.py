"""Splits by flat offsets: which elements they give to which chip, counted without looking at each one."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.inter_chip.splits import (
    are_independent,
    joint_counts,
    largest_share,
    moved_elements,
    split_of,
)
from dfcompile.dfmodel_backend.workload.graph import Split
from tests.examples import examples

SIZES = (24, 30, 36, 48, 60, 64, 72)


def random_splits(rng: random.Random, elements: int) -> list[Split]:
    found = []
    for _ in range(rng.randint(1, 4)):
        stride = rng.choice([one for one in range(1, elements + 1) if elements % one == 0])
        extent = rng.choice([one for one in range(1, elements // stride + 1) if elements // stride % one == 0])
        chips = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
        found.append(split_of(elements, stride, extent, chips, rng.randrange(len(chips))))
    return found


@examples(100)
@given(st.integers(0, 2**40), st.sampled_from(SIZES))
def test_combinations_are_counted_as_if_one_by_one(seed: int, elements: int) -> None:
    splits = random_splits(random.Random(seed), elements)
    rows = np.stack([split.coordinates(np.arange(elements)) for split in splits], axis=1).tolist()

    found = {key: count for key, count in joint_counts(tuple(splits), elements) if count}
    assert found == {tuple(row): rows.count(row) for row in rows}


@examples(100)
@given(st.integers(0, 2**40), st.sampled_from(SIZES))
def test_splits_are_equal_where_each_chip_has_the_same_elements(seed: int, elements: int) -> None:
    rng = random.Random(seed)
    splits = {split for _ in range(20) for split in random_splits(rng, elements)}

    assert len({tuple(split.coordinates(np.arange(elements)).tolist()) for split in splits}) == len(splits)


def test_a_split_by_heads_is_one_by_columns_where_chips_divide_the_heads() -> None:
    columns = split_of(16 * 768, 1, 768, [4], 0)

    assert columns == split_of(16 * 768, 64, 12, [4], 0)  # [16, 12, 64] by heads
    assert columns != split_of(16 * 768, 64, 12, [8], 0)
    assert split_of(16 * 768, 1, 768, [8], 0) != split_of(16 * 768, 64, 12, [8], 0)  # 1.5 heads


def test_extents_that_chips_do_not_divide_leave_the_last_ones_with_less_or_nothing() -> None:
    rows = split_of(5 * 4, 4, 5, [4], 0)

    assert joint_counts((rows,), 20) == (((0,), 8), ((1,), 8), ((2,), 4))
    assert largest_share((rows,), 20) == 8


def test_a_transpose_moves_all_but_the_blocks_on_the_diagonal() -> None:
    rows, columns = split_of(512 * 2048, 2048, 512, [8], 0), split_of(512 * 2048, 1, 2048, [8], 0)

    assert moved_elements((rows,), (columns,), 512 * 2048) == 512 * 2048 * 7 // 8
    assert moved_elements((rows,), (rows,), 512 * 2048) == 0


def test_one_digit_along_two_dimensions_is_split_twice_or_lies_on_a_diagonal() -> None:
    outer, inner = (split_of(64, 1, 64, [4, 2], place) for place in (0, 1))

    assert largest_share((outer, inner), 64) == 8
    assert are_independent((outer, inner), 64)
    assert not are_independent((outer, outer), 64)

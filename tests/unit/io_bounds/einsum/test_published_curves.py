"""The tool's 69 curves, point by point, in its mode: divisors, and halos that it forgets."""

import time

import numpy as np
import pytest

from dfcompile.io_bounds.curve import Curve, Halo, Int64, Rules, Tiles, tile_sizes
from dfcompile.io_bounds.einsum import convolution, plain
from dfcompile.io_bounds.einsum.convolution import Convolution
from dfcompile.io_bounds.einsum.plain import PlainEinsum
from tests.unit.io_bounds.published_curves import Published, published

AS_THE_TOOL = Rules(Tiles.DIVISORS, Halo.FORGET)
FRONTS = published("fronts.txt")

# The tool takes accesses within 0.1 % for equal, and then prefers less energy: (curve, words of buffer, its figure).
IN_ITS_TIE_BAND = {
    ("fig13_gbmm_4096_128_4096_h32_g1", 12288, 2684878848),
    ("fig13_gbmm_4096_64_4096_h64_g1", 3072, 5368971264),
    ("fig13_gbmm_4096_32_4096_h128_g1", 768, 10737549312),
    ("fig14_gbmm_4096_128_4096_h32_g1", 12288, 2684878848),
}


def curve_of(shape: Convolution | PlainEinsum, rules: Rules) -> Curve:
    if isinstance(shape, PlainEinsum):
        return plain.plain_curve(shape, rules)
    return convolution.convolution_curve(shape, rules)


def of_product(shape: PlainEinsum) -> tuple[Int64, Int64]:
    """Return the buffer size that each tiling fills exactly, and its traffic in the best order of loops."""
    choices = [tile_sizes(extent, AS_THE_TOOL.tiles) for extent in shape.extents]
    counts = tuple(map(len, choices))
    ways = [plain._traffic(shape, choices, order, AS_THE_TOOL) for order in plain._orders(shape)]
    sizes, *traffic = (np.broadcast_to(column, counts).ravel() for column in (plain._sizes(shape, choices), *ways))
    return sizes, np.minimum.reduce(traffic)


def of_windows(shape: Convolution) -> tuple[Int64, Int64]:
    """Return the same of windows, for each class of orders of loops."""
    found = convolution._Tilings(shape, AS_THE_TOOL, convolution._WORDS)
    columns = [column for kind in found.classes for column in found.columns(kind, reduces=False)]
    sizes, traffic = (np.concatenate([column[part] for column in columns]) for part in (0, 1))
    return sizes, traffic * shape.groups


def least_of_each_size(sizes: Int64, traffic: Int64) -> tuple[Int64, Int64]:
    """Return all sizes, ascending, and the least traffic of a point of exactly that size."""
    order = np.lexsort((traffic, sizes))
    found, starts = np.unique(sizes[order], return_index=True)
    return found, traffic[order][starts]


@pytest.mark.parametrize("case", FRONTS, ids=[case.name for case in FRONTS])
def test_every_point_of_a_front_is_the_tools(case: Published) -> None:
    curve = curve_of(case.shape, AS_THE_TOOL)

    assert np.array_equal(np.stack([curve.sizes, curve.traffic], axis=1), case.rows)


def test_every_buffer_size_has_the_tools_traffic_but_for_its_ties() -> None:
    compared = 0
    different = set()
    for case in published("every_size.txt"):
        shape = case.shape
        sizes, traffic = least_of_each_size(
            *(of_product(shape) if isinstance(shape, PlainEinsum) else of_windows(shape))
        )
        assert np.array_equal(sizes, case.rows[:, 0])
        compared += len(sizes)
        for row in np.flatnonzero(traffic != case.rows[:, 1]):
            different.add((case.name, int(sizes[row]), int(case.rows[row, 1])))
            assert traffic[row] < case.rows[row, 1] <= traffic[row] * 1.001

    assert len(FRONTS) == 69
    assert compared == 28_655
    assert different == IN_ITS_TIE_BAND


def test_all_curves_take_less_than_a_second() -> None:
    before = time.process_time()
    for case in FRONTS:
        curve_of(case.shape, AS_THE_TOOL)

    assert time.process_time() - before < 1

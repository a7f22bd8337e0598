"""The published way to fuse chains, rebuilt until it gives the tool's own figures, beside what can be run."""

from itertools import product

import numpy as np
import pytest

from dfcompile.io_bounds.curve import Rules, Tiles
from dfcompile.io_bounds.fusion.chain import Fusion, chain_curve
from tests.unit.io_bounds.fusion.chain_walks import Point, Walk
from tests.unit.io_bounds.fusion.published_fusion import tiled, untiled
from tests.unit.io_bounds.published_curves import FOLDER
from tests.unit.io_bounds.walks import front

DIVISORS = Rules(Tiles.DIVISORS)
CHAINS = {"ffn2": (64, (16, 48, 16)), "ffn3": (32, (8, 24, 16, 8))}
TEMPLATES = {
    ("ffn2", Fusion.RELAX_IO): ("allowk", "allown"),
    ("ffn2", Fusion.RELAX_IO_KN): ("allowkn", "allownk"),
    ("ffn2", Fusion.FLASH): ("allown_flash", "allowk_flash"),
    ("ffn3", Fusion.RELAX_IO): ("allowk", "base", "allown"),
    ("ffn3", Fusion.RELAX_IO_KN): ("allowkn", "allowk", "allown"),
    ("ffn3", Fusion.FLASH): ("allown_flash", "base", "allowk_flash"),
}


def published(name: str) -> list[Point]:
    """A front of the tool in words; its sizes are bytes of two-byte words."""
    rows = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1)
    return front([(int(size) // 2, int(moved)) for size, moved in rows.tolist()])


def at(points: list[Point], size: int) -> int:
    return min(moved for taken, moved in points if taken <= size)


@pytest.mark.parametrize("chain", CHAINS)
def test_unfused_chains_are_the_tools_point_by_point(chain: str) -> None:
    curve = chain_curve(*CHAINS[chain], DIVISORS, Fusion.UNFUSED)

    assert list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True)) == published(f"{chain}_unfused")


@pytest.mark.parametrize(("chain", "fusion"), [key for key in TEMPLATES if key != ("ffn3", Fusion.FLASH)])
def test_the_method_as_rebuilt_gives_the_tools_figures(chain: str, fusion: Fusion) -> None:
    assert tiled(*CHAINS[chain], TEMPLATES[chain, fusion]) == published(f"{chain}_tiled_{fusion}")


def test_the_tool_reads_a_tensor_for_nothing_that_was_written_out() -> None:
    """Its layers choose by themselves what is fused; at 801 words no agreeing choice comes near its figure."""
    tool, rebuilt = at(published("ffn3_untiled"), 801), untiled(*CHAINS["ffn3"], 801)
    agreeing = [chain_curve(*CHAINS["ffn3"], rules, Fusion.UNTILED).at(801) for rules in (DIVISORS, Rules())]

    assert tool == rebuilt == 1728
    assert agreeing == [2240, 2240]
    assert 2240 / tool == pytest.approx(1.30, abs=0.005)


def test_the_tool_prunes_what_would_have_been_best() -> None:
    """Of rows of one size that moves least which is not fused: of three layers with rows inside 2.5 times are lost."""
    chain, templates = CHAINS["ffn3"], TEMPLATES["ffn3", Fusion.FLASH]
    tool = at(published("ffn3_tiled_flash"), 224)
    pruned, joined = (at(tiled(*chain, templates, prunes=prunes), 224) for prunes in (True, False))

    assert tool == pruned == 13120
    assert joined == 5248
    assert tool / joined == 2.5
    # Its sizes leave out what stays of other layers: with that, 5,248 words take 289, and 224 words move 6,144.
    ours = chain_curve(*chain, DIVISORS, Fusion.FLASH)
    assert (ours.at(224), ours.size_within(5248)) == (6144, 289)


def test_the_tool_prunes_whole_tensors_too() -> None:
    chain = CHAINS["ffn2"]
    tool, joined = at(published("ffn2_untiled"), 3075), untiled(*chain, 3075, prunes=False)

    assert tool == untiled(*chain, 3075) == 51200
    assert joined == 50944  # less is lost here
    assert chain_curve(*chain, DIVISORS, Fusion.UNTILED).at(3075) == 9728  # either tensor may be spilled


def test_the_tool_counts_the_weights_of_one_layer_where_two_stay() -> None:
    """With rows inside both slices of weights must stay; it takes the larger layer alone."""
    size, moved = 424, 6656
    assert (size, moved) in published("ffn2_tiled_flash")
    rows, widths = CHAINS["ffn2"]
    taken, least = Walk(rows, widths, (True, True), (False, False)).rows_inside(24, 1)

    assert least == moved
    assert taken == 793
    assert chain_curve(rows, widths, DIVISORS, Fusion.FLASH).size_within(moved) == 793


def test_no_schedule_of_the_templates_is_below_ours_where_the_tool_is() -> None:
    """Slices between two layers: the tool takes the larger of two layers, though both tiles are there at once."""
    rows, widths = CHAINS["ffn2"]
    tool = published("ffn2_tiled_relax_io_kn")
    ours = chain_curve(rows, widths, DIVISORS, Fusion.RELAX_IO_KN)
    below = [(size, moved) for size, moved in tool if (ours.at(size) or 0) > moved]

    assert below[0] == (69, 26624)
    assert ours.at(69) == 32768
    assert all((ours.at(size) or 0) <= moved for size, moved in tool if size < below[0][0])


def test_whole_chains_never_move_more_than_any_named_way() -> None:
    for (rows, widths), rules in product(CHAINS.values(), (DIVISORS, Rules())):
        whole = chain_curve(rows, widths, rules)
        for fusion in Fusion:
            curve = chain_curve(rows, widths, rules, fusion)
            for size, moved in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
                assert (whole.at(size) or 0) <= moved

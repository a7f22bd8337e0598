"""Published designs without their assignment: the optimum is the published one, or better."""

import json

import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.inter_chip.degrees import tile_counts
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.sharding.designs import shard
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.solved_designs import OLD

CASES = json.loads((DESIGNS / "cases.json").read_text())
SN30, README, RING = "llm_1T_sn30_3dtorus_dataflow", "readme_gpt3_1t_sn30", "llm_175B_fwd_kbk_8x1"


def logged_sharding(name: str) -> dict[int, Dim]:
    return {int(number): Dim(dim) for number, dim in CASES[name]["sharding"].items()}


def solved(name: str, options: DesignOptions) -> DesignSolution:
    return solve_design(read_design(DESIGNS / f"{name}.txt"), options)


def test_fusion_of_the_3d_torus_equals_its_log() -> None:
    design = read_design(DESIGNS / f"{SN30}.txt")

    fused = DesignFusion(design, DesignOptions()).fuse(DesignModel(design, logged_sharding(SN30), 1024, OLD))

    assert fused is not None
    assert fused.time_ns == pytest.approx(24_518_611.549426753, rel=1e-9)


def test_search_over_tile_counts_beats_the_log_of_the_ring() -> None:
    found = solved(RING, DesignOptions(compatibility=replace(OLD, all_reduce_factor=1, periodic_factor=0)))

    assert found.decision.tiles == 3
    assert found.figures.step_ns == pytest.approx(26_399_917.44, rel=1e-9)
    assert found.figures.step_ns < sum(CASES[RING]["config_ns"].values())


@pytest.mark.parametrize(
    ("name", "expected_bytes"),
    [(RING, 100_663_296), ("llm_175B_tpu_3dtorus", 201_326_592), ("llm_1T_calculon_4_32_32", 419_430_400)],
)
def test_sharding_moves_two_tensors_forward_and_four_in_training(name: str, expected_bytes: float) -> None:
    design = read_design(DESIGNS / f"{name}.txt")
    letters = replace(RIGHT, layouts_by_letter=True)
    found = shard(design, compatibility=letters)

    assert found.communication_bytes == pytest.approx(expected_bytes)
    assert all(found.sharding[k.id] is Dim.OUTER for k in design.kernels if k.outer > 1)


def test_ties_may_go_to_splitting_nothing() -> None:
    design = read_design(DESIGNS / f"{RING}.txt")
    letters = replace(RIGHT, layouts_by_letter=True)
    split, whole = (shard(design, compatibility=one) for one in (letters, ORIGINAL))

    assert split.communication_bytes == pytest.approx(whole.communication_bytes)
    assert [k.name for k in design.kernels if split.sharding[k.id] is not whole.sharding[k.id]] == [
        "LayerNorm_1",
        "DropOut_3",
        "Add_2",
    ]


def test_pinned_shardings_are_kept_or_refused() -> None:
    design = read_design(DESIGNS / f"{RING}.txt")
    assert shard(design, {14: Dim.K}).sharding[14] is Dim.K
    with pytest.raises(InfeasibleError, match="kernel 'FFN0': sharding N against one of M, K"):
        shard(design, {14: Dim.N})


def test_tile_counts_are_the_distinct_ones_of_all_tile_sizes() -> None:
    free = read_design(DESIGNS / f"{RING}.txt")
    given = read_design(DESIGNS / f"{SN30}.txt")

    assert tile_counts(free, RIGHT)[:4] == (1, 2, 3, 4)
    assert tile_counts(free, RIGHT)[-3:] == (683, 1024, 2048)
    assert tile_counts(given, RIGHT) == (1,)
    assert tile_counts(given, ORIGINAL) == tile_counts(free, RIGHT)

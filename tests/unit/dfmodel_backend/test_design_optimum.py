"""Published designs without their assignment: the optimum is the published one, or better."""

import json
from pathlib import Path

import pytest

from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.design import Dim
from dfcompile.dfmodel_backend.design_evaluator import DesignModel
from dfcompile.dfmodel_backend.design_file import read_design
from dfcompile.dfmodel_backend.inter_chip import shard
from dfcompile.dfmodel_backend.intra_chip import fuse, optimize_tiles, tile_counts
from dfcompile.dfmodel_backend.options import MappingOptions, Solver
from dfcompile.errors import InfeasibleError

DATA = Path(__file__).parents[2] / "data" / "dfmodel"
CASES = json.loads((DATA / "cases.json").read_text())
SN30, README, RING = "llm_1T_sn30_3dtorus_dataflow", "readme_gpt3_1t_sn30", "llm_175B_fwd_kbk_8x1"
OLD = Compatibility(all_reduce_factor=2.0, periodic_factor=2.0, network_is_sum=True, tile_size_is_a_hint=True)


def logged_sharding(name: str) -> dict[int, Dim]:
    return {int(number): Dim(dim) for number, dim in CASES[name]["sharding"].items()}


def test_fusion_of_the_readme_example() -> None:
    """A solver of integer programs needed 262 s on 144 threads for it."""
    design = read_design(DATA / f"{README}.txt")
    model = DesignModel(design, logged_sharding(SN30), tiles=1024)

    fused = fuse(model)

    assert fused is not None
    figures = model.figures(fused.configs)
    assert fused.time_ns == pytest.approx(24_525_758.08, rel=1e-8)
    assert figures.step_ns == pytest.approx(fused.time_ns, rel=1e-12)
    assert figures.utilization == pytest.approx(0.7748055154407518, rel=1e-9)
    assert max(fused.configs.values()) == 5


def test_fusion_of_the_3d_torus_equals_its_log() -> None:
    design = read_design(DATA / f"{SN30}.txt")

    fused = fuse(DesignModel(design, logged_sharding(SN30), 1024, OLD))

    assert fused is not None
    assert fused.time_ns == pytest.approx(24_518_611.549426753, rel=1e-9)


def test_search_over_tile_counts_beats_the_log_of_the_ring() -> None:
    design = read_design(DATA / f"{RING}.txt")
    decision = optimize_tiles(design, logged_sharding(RING))

    best_ns = DesignModel(design, decision.sharding, decision.tiles).figures(decision.configs).step_ns

    assert decision.tiles == 3
    assert best_ns == pytest.approx(26_399_917.44, rel=1e-9)
    assert best_ns < sum(CASES[RING]["config_ns"].values())


@pytest.mark.parametrize("solver", [Solver.CBC, Solver.HIGHS])
@pytest.mark.parametrize(
    ("name", "expected_bytes"),
    [(RING, 100_663_296), ("llm_175B_tpu_3dtorus", 201_326_592), ("llm_1T_calculon_4_32_32", 419_430_400)],
)
def test_sharding_moves_two_tensors_forward_and_four_in_training(
    name: str, expected_bytes: float, solver: Solver
) -> None:
    design = read_design(DATA / f"{name}.txt")
    found = shard(design, MappingOptions(solver=solver))

    assert found.communication_bytes == pytest.approx(expected_bytes)
    assert found.sharding == shard(design, MappingOptions(solver=Solver.CBC)).sharding
    assert all(found.sharding[k.id] is Dim.OUTER for k in design.kernels if k.outer > 1)


def test_pinned_shardings_are_kept_or_refused() -> None:
    design = read_design(DATA / f"{RING}.txt")
    options = MappingOptions(solver=Solver.CBC)

    assert shard(design, options, {14: Dim.K}).sharding[14] is Dim.K
    with pytest.raises(InfeasibleError, match="kernel 'FFN0': sharding N against one of M, K"):
        shard(design, options, {14: Dim.N})


def test_tile_counts_are_the_distinct_ones_of_all_tile_sizes() -> None:
    free = read_design(DATA / f"{RING}.txt")
    given = read_design(DATA / f"{SN30}.txt")

    assert tile_counts(free)[:4] == [1, 2, 3, 4]
    assert tile_counts(free)[-3:] == [683, 1024, 2048]
    assert tile_counts(given) == [1]
    assert tile_counts(given, OLD) == tile_counts(free)


def test_too_little_sram_for_any_tile_count() -> None:
    with pytest.raises(InfeasibleError, match=r"no mapping fits 671088640 bytes of SRAM with 1 tiles"):
        optimize_tiles(read_design(DATA / f"{SN30}.txt"), logged_sharding(SN30))

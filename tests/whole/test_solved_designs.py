"""Published designs: solved by every solver, accepted by the checker, and no slower than published.

Those of many choices are solved without their assignment.
"""

import pytest

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.solved_designs import OLD, solved_design, solved_ns

SN30, README, SCAN = "llm_1T_sn30_3dtorus_dataflow", "readme_gpt3_1t_sn30", "mamba_scan_256k_rdu"


def solved(name: str) -> DesignSolution:
    return solved_design(name, ORIGINAL)


@pytest.mark.parametrize("solver", ["cbc", "highs"])
def test_readme_example_by_integer_programs(solver: str) -> None:
    design = read_design(DESIGNS / f"{README}.txt")

    time_ns = solved_ns(DesignModel(design, solved(README).decision.sharding, 1024, ORIGINAL), solver)

    assert time_ns == pytest.approx(24_525_758.08, rel=1e-8)


def published() -> list[str]:
    return sorted(path.stem for path in DESIGNS.glob("*.txt"))


@pytest.mark.parametrize("name", published())
def test_checker_accepts_solved_published_designs(name: str) -> None:
    found = solved(name)

    check_design(found.design, found.decision, found.figures, ORIGINAL)
    assert found.gap == 0


def test_readme_example() -> None:
    """A solver of integer programs needed 262 s on 144 threads for it."""
    found = solved(README)

    assert found.figures.step_ns == pytest.approx(24_525_758.08, rel=1e-8)
    assert found.figures.utilization == pytest.approx(0.7748055154407518, rel=1e-9)
    assert max(found.decision.configs.values()) == 5
    assert found.optimal
    assert found.gap == 0


def test_sharding_of_ties_makes_the_3d_torus_faster_than_its_log() -> None:
    """Splitting outputs where it moves no more bytes gives -0.73 %, an objective of time gives more."""
    split = replace(OLD, sharding_ties_whole=False)

    design = read_design(DESIGNS / f"{SN30}.txt")
    by_bytes = solve_design(design, DesignOptions(compatibility=split))
    by_time = solve_design(design, DesignOptions(compatibility=split, objective=ShardingObjective.TIME))

    assert by_bytes.figures.step_ns == pytest.approx(24_339_245.62, rel=1e-8)
    assert by_time.figures.step_ns < by_bytes.figures.step_ns
    assert by_time.communication_bytes >= by_bytes.communication_bytes


def test_optimum_of_the_scan_is_the_logged_time() -> None:
    """Its log states no assignment."""
    found = solved(SCAN)

    assert found.figures.batch_ns == pytest.approx(9019.999865591528, rel=1e-9)
    assert found.figures.utilization == pytest.approx(0.3362101313320825, rel=1e-9)

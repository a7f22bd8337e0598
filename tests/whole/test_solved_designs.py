"""Published designs, solved by every solver, and accepted by the checker."""

import pytest

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.solved_designs import solved_ns


@pytest.mark.parametrize("solver", ["cbc", "highs", "assignment-cbc", "assignment-highs"])
def test_readme_example_by_integer_programs(solver: str) -> None:
    design = read_design(DESIGNS / "readme_gpt3_1t_sn30.txt")
    sharding = solve_design(design, DesignOptions(compatibility=ORIGINAL)).decision.sharding

    time_ns = solved_ns(DesignModel(design, sharding, 1024, ORIGINAL), solver)

    assert time_ns == pytest.approx(24_525_758.08, rel=1e-8)


def published() -> list[str]:
    return sorted(path.stem for path in DESIGNS.glob("*.txt"))


@pytest.mark.parametrize("name", published())
def test_checker_accepts_solved_published_designs(name: str) -> None:
    found = solve_design(read_design(DESIGNS / f"{name}.txt"), DesignOptions(compatibility=ORIGINAL))

    check_design(found.design, found.decision, found.figures, ORIGINAL)
    assert found.gap == 0

"""Published designs, solved, written and solved again: nothing changes."""

import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file.message import parse_message, read_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.design_file.solved import solved_message
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.solved_designs import solved_design


def solve_text(message: schema.DSE, compatibility: Compatibility) -> str:
    solution = solve_design(design_of(message, "x.txt"), DesignOptions(compatibility=compatibility))
    return text_of(solved_message(message, solution))


def solved_text(name: str, compatibility: Compatibility) -> str:
    message = read_message(DESIGNS / f"{name}.txt")
    return text_of(solved_message(message, solved_design(name, compatibility)))


@pytest.mark.parametrize("compatibility", [RIGHT, ORIGINAL])
@pytest.mark.parametrize(
    "name",
    ["readme_gpt3_1t_sn30", "llm_175B_fwd_kbk_8x1", "fft_a100_1024", "dlrm_A_zionex_128", "llm_175B_fwd_sramdram_mm"],
)
def test_solving_a_solved_file_changes_nothing(name: str, compatibility: Compatibility) -> None:
    once = solved_text(name, compatibility)

    assert solve_text(parse_message(once, "x.txt"), compatibility) == once

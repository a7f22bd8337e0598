"""A second memory is used where the first is too small, and slows both down."""

from pathlib import Path

import pytest

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.design_file.message import parse_message, read_message
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.design_file.solved import memory_choices, solve_message
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.errors import InfeasibleError, UserError
from tests.locations import DESIGNS


def with_memories(first: float, second: float, second_bandwidth: float = 100.0) -> schema.DSE:
    message = read_message(DESIGNS / "serve_gpt3_prefill_genz_f10_4x.txt")
    memory = message.system.memory
    memory.dram_bw, memory.dram_cap = 400.0, first
    memory.second_dram_bw, memory.second_dram_cap = second_bandwidth, second
    return message


def test_what_fits_the_first_memory_is_there_alone() -> None:
    found = solve_message(with_memories(40e9, 80e9), "x.txt", DesignOptions())

    assert found.figures.dram_bytes > 0
    assert found.design.machine.dram_bytes == pytest.approx(40e9)
    assert found.design.machine.dram_gb_per_s == 400


def test_what_does_not_is_in_both_at_their_mean_bandwidth() -> None:
    needed = solve_message(with_memories(40e9, 80e9), "x.txt", DesignOptions()).figures.dram_bytes
    small = needed / 2

    found = solve_message(with_memories(small, 3 * small), "x.txt", DesignOptions())

    assert found.design.machine.dram_bytes == pytest.approx(4 * small)
    assert found.design.machine.dram_gb_per_s == pytest.approx((400 + 3 * 100) / 4)
    assert found.figures.dram_bytes > small


def test_too_much_for_both_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match=r"field 'system.memory.dram_cap': found 3000000000 bytes against"):
        solve_message(with_memories(1e9, 2e9), "x.txt", DesignOptions())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (with_memories(1e9, 0), "field 'system.memory.second_dram_cap': found 0 against more than 0"),
        (with_memories(0, 1e9), "field 'system.memory.dram_cap': found 0 against more than 0"),
        (with_memories(1e9, 1e9, 0), "field 'system.memory.second_dram_bw': found 0 against more than 0"),
        (with_memories(1e9, 1e9, 500), "field 'system.memory.second_dram_bw': found 500 against at most dram_bw 400"),
    ],
)
def test_contradictory_memories_are_refused(message: schema.DSE, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        memory_choices(message, "x.txt")


def test_a_design_by_itself_has_one_memory() -> None:
    with pytest.raises(UserError, match=r"'system.memory.second_dram_bw': found 100 against none of a design with one"):
        parse_design(str(with_memories(1e9, 1e9)), "x.txt")


def test_the_solved_file_keeps_both(tmp_path: Path) -> None:
    setup = tmp_path / "setup.txt"
    setup.write_text(str(with_memories(40e9, 80e9)))

    assert main([str(setup), "-o", str(tmp_path / "solved"), "--format", "json"]) == 0
    solved = parse_message((tmp_path / "solved" / "solved.txt").read_text(), "x.txt")
    assert solved.system.memory == with_memories(40e9, 80e9).system.memory

"""Designs without a solution: one line that names field or kernel, and what would be enough."""

import re
from pathlib import Path

import pytest

from dfcompile.cli.main import main
from tests.locations import DESIGNS

README, JOINT = "readme_gpt3_1t_sn30", "llm_1T_fwd_joint_CMN"  # the latter has few kernels


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (JOINT, "sram_cap: 545259520.0", "sram_cap: 300000.0", r"kernel '\w+': needs \d+ bytes of SRAM alone"),
        (
            README,
            "dram_cap: 1099511600000.0",
            "dram_cap: 2e9",
            r"dram_cap': found 2000000000 bytes against .*optimizer",
        ),
        (
            JOINT,
            "core: 1040",
            "core: 2",
            r"SRAM and 2 cores \(execution.num_config of at least 11, or system.accelerator.core of at least 7\)",
        ),
        (README, "x: 8\n    y: 128", "x: 64\n    y: 16", r"kernel 'Q': found TP 64 against a divisor of its 160 heads"),
        (README, "global_batch_size: 3072", "global_batch_size: 0", r"global_batch_size' is unset"),
        (
            README,
            "startIdx: 2\n    endIdx: 3\n",
            "startIdx: 6\n    endIdx: 2\n",
            r"cycle of connections \(remove one\)",
        ),
        (
            README,
            "startIdx: 2\n    endIdx: 3\n",
            "startIdx: 1\n    endIdx: 2\n",
            r"connection 2: 1 to 2 is there twice",
        ),
        (README, "  r_r {", "  r_x {", r"unknown field 'r_x' of System \(did you mean 'r_r'\?\)"),
        (README, "overlap: PERFECT_OVERLAP", "", r"field 'execution.overlap' is unset"),
        (README, 'par_x: "TP"', 'par_x: "XP"', r"found parallelism XP, PP against TP, PP, DP in order"),
        (README, "num_chip: 1024", "num_chip: 1000", r"topology r_r: found 8 x 128 chips against 1000"),
    ],
)
def test_one_line_names_the_constraint_and_the_relaxation(
    name: str, old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = re.sub(r"(startIdx: \d+)\s+(endIdx: \d+)\s", r"\1\n    \2\n", (DESIGNS / f"{name}.txt").read_text())
    assert old in text
    setup = tmp_path / "setup.txt"
    setup.write_text(text.replace(old, new, 1))

    status = main([str(setup)])

    error = capsys.readouterr().err
    assert status == 1
    assert re.search(message, error), error
    assert error.count("\n") == 1


def test_the_relaxation_named_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DESIGNS / f"{JOINT}.txt").read_text()
    setup = tmp_path / "setup.txt"
    setup.write_text(text.replace("sram_cap: 545259520.0", "sram_cap: 3e8"))
    status = main([str(setup)])
    error = capsys.readouterr().err
    sram, configs = re.findall(r"at least (\d+)", error)

    assert (status, error.count("\n")) == (1, 1)
    assert re.search(r"'execution.num_config': no 6 configurations .*num_config of", error), error

    setup.write_text(text.replace("sram_cap: 545259520.0", f"sram_cap: {sram}"))
    more_sram = main([str(setup)])
    setup.write_text(
        text.replace("sram_cap: 545259520.0", "sram_cap: 3e8").replace("num_config: 6", f"num_config: {configs}")
    )
    more_configurations = main([str(setup)])

    assert (more_sram, more_configurations) == (0, 0)


def test_fewer_chips_than_heads_are_enough_where_chips_would_share_heads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published solution on 16 chips cuts 12 heads."""
    text = (DESIGNS / "solved_decode_ring16.txt").read_text()
    setup = tmp_path / "setup.txt"
    setup.write_text(text)
    as_given = main([str(setup)])
    assert "kernel 'Q': found TP 16 against a divisor of its 12 heads (TP 12 divides them" in capsys.readouterr().err

    setup.write_text(text.replace("num_chip: 16\n", "num_chip: 12\n").replace(" x: 16\n", " x: 12\n"))

    assert (as_given, main([str(setup)])) == (1, 0)

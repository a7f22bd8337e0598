"""Design files: older field names, and errors that name the field."""

import pytest

from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import UserError
from tests.locations import DESIGNS

TEXT = (DESIGNS / "readme_gpt3_1t_sn30.txt").read_text()


def test_older_names_are_accepted() -> None:
    older = TEXT.replace("execution {", "miscellany {").replace("overlap: PERFECT_OVERLAP", "perfect_overlap: false")

    assert parse_design(older, "x.txt").execution.overlap is Overlap.NO_OVERLAP


def test_fields_are_read_as_32_bit() -> None:
    assert parse_design(TEXT, "x.txt").execution.compute_utilization == 0.8999999761581421


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dram_bw:", "dram_band:", r"x.txt:\d+: unknown field 'dram_band' of Memory \(did you mean 'dram_bw'\?\)"),
        ("dram_bw: 300.0", "dram_bw: fast", r"x.txt:\d+: couldn't parse float: fast"),
        ("dram_bw: 300.0", "", "field 'system.memory.dram_bw': found 0.0 against a positive number"),
        ("dram_bw: 300.0", "dram_bw: 300.0 second_dram_bw: 9", "memory.second_dram_bw': found 9 against none"),
        ("core: 1280", "core: -1", "field 'system.accelerator.core': found -1 against at least 0"),
        ("overlap: PERFECT_OVERLAP", "", "field 'execution.overlap' is unset"),
        ("word: 2", "", "field 'execution.word': found 0 against at least 1 byte"),
        ("head_dim: 160", "head_dim: 150", "field 'execution.llm.hidden_dim': found 25600 against num_head x head_dim"),
        ("global_batch_size: 3072", "", "field 'execution.llm.global_batch_size' is unset"),
        ("endIdx: 2\n", "endIdx: 99\n", "connection 1: no kernel with id 99"),
        ("startIdx: 2\n    endIdx: 3\n", "startIdx: 1\n    endIdx: 2\n", "connection 2: 1 to 2 is there twice"),
    ],
)
def test_bad_designs_name_the_field(old: str, new: str, message: str) -> None:
    text = TEXT.replace("startIdx: 2\n  endIdx: 3\n", "startIdx: 2\n    endIdx: 3\n")
    assert old in text
    with pytest.raises(UserError, match=message) as caught:
        parse_design(text.replace(old, new, 1), "x.txt")

    assert "\n" not in str(caught.value)

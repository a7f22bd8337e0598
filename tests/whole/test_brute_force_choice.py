"""Of all ways to lower and divide a tiny model none is faster than the default choice by more than 2 %.

`make fuzz` draws others.
"""

from pathlib import Path

import pytest

import dfcompile as df
from dfcompile.dfmodel_backend import load_system
from dfcompile.frontend import read_model
from tests.fuzz.brute_cases import drawn_tiny_model, judge_brute
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine
from tests.fuzz.outcome import Verdict
from tests.fuzz.small_models import tiny_model
from tests.whole.brute_force import BruteForce, Found, least_time, mapped_time


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("seed", ["b1001", "b1014", "b1025", "b1037", "b1043", "b1048", "b1055", "b1141"])
def test_no_way_to_lower_and_divide_a_tiny_model_is_faster(seed: str) -> None:
    draw = Draw(seed)
    case = drawn_tiny_model(draw)
    Path("case.onnx").write_bytes(case.content)
    outcome = judge_brute(Path("case.onnx"), case, draw, lambda _: None)

    assert outcome.verdict is Verdict.ACCEPTED, outcome.detail or outcome.cause


def test_times_of_all_ways_are_those_of_the_report_and_stand_above_their_bounds() -> None:
    file, machine = Path("case.onnx"), DrawnMachine(pes=2, sram_bytes=20, gb_per_s=4.0)
    file.write_bytes(tiny_model(Draw("b1023")))  # a sum of rows
    system = load_system(machine.file()).with_cores(machine.pes)
    found = BruteForce(read_model(file).program)
    (ways,) = found.ways.values()

    assert len(ways) == found.size > 3
    for way in ways:
        lowered = found.lowered((way,))
        assert lowered is not None
        taken = mapped_time(lowered[0], system)
        Path("choice.txt").write_text(Found(found.choices((way,)), found.granularity((way,)), taken).line(machine.pes))
        (result,) = df.compile(file, pes=[machine.pes], system=machine.file(), choice="choice.txt").report.results
        assert result.mapping is not None
        assert result.mapping.time_s == taken >= least_time(*lowered, system)

"""Of all ways to lower and divide a tiny model none is faster than the default choice by more than 2 %.

`make fuzz` draws others.
"""

from pathlib import Path

import pytest

import dfcompile as df
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.dfmodel_backend import System, load_system
from dfcompile.frontend import read_model
from dfcompile.options import Choice
from dfcompile.records import replace
from tests.fuzz.brute_cases import drawn_tiny_model, judge_brute
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine
from tests.fuzz.outcome import Verdict
from tests.fuzz.small_models import tiny_model
from tests.whole.brute_force import BruteForce, Found, Way, least_time, mapped_time


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "seed", ["b1001", "b1014", "b1025", "b1037", "b1043", "b1048", "b1055", "b1141", "e39b:61", "733120537:brute:3"]
)
def test_no_way_to_lower_and_divide_a_tiny_model_is_faster(seed: str) -> None:
    draw = Draw(seed)
    case = drawn_tiny_model(draw)
    Path("case.onnx").write_bytes(case.content)
    outcome = judge_brute(Path("case.onnx"), case, draw, lambda _: None)

    assert outcome.verdict is Verdict.ACCEPTED, outcome.detail or outcome.cause


def test_times_of_all_ways_are_those_of_the_report_and_stand_above_their_bounds() -> None:
    file, machine = Path("case.onnx"), DrawnMachine(pes=2, sram_bytes=20, gb_per_s=4.0)
    file.write_bytes(tiny_model(Draw("b1023")))  # a sum of rows
    found = BruteForce(read_model(file).program)
    (ways,) = found.ways.values()

    assert len(ways) == found.size > 3
    for way in ways:
        lowered = found.lowered((way,))
        assert lowered is not None
        assert least_time(*lowered, system_of(machine)) <= time_of_the_report(file, machine, found, way)


def test_kernels_of_several_scopes_are_not_parted() -> None:
    file, machine = Path("case.onnx"), DrawnMachine(pes=3, sram_bytes=120, gb_per_s=0.5)
    file.write_bytes(tiny_model(Draw("b1041")))  # a product: parts of its sums are added up in a scope of their own
    found = BruteForce(read_model(file).program)
    split = Choice("MatMul", "split-k{parts=2}", "MatMul_0")
    (way,) = (way for way in found.ways["MatMul_0"] if way.choices == (split,) and way.pieces == 1)

    assert time_of_the_report(file, machine, found, way) > least_time_in_parts(found, way, system_of(machine))


def system_of(machine: DrawnMachine) -> System:
    return load_system(machine.file()).with_cores(machine.pes)


def least_time_in_parts(found: BruteForce, way: Way, system: System) -> float:
    """Return the time of a way if kernels were not known, in seconds."""
    lowered = found.lowered((way,))
    assert lowered is not None
    scopes = tuple(replace(scope, kernel=None) for scope in lowered[1].scopes)
    options = ExtractionOptions(granularity=found.granularity((way,)))
    return mapped_time(extract_graph(replace(lowered[1], scopes=scopes), options), system)


def time_of_the_report(file: Path, machine: DrawnMachine, found: BruteForce, way: Way) -> float:
    """Return the time of a way, in seconds, which the report has as well."""
    taken = mapped_time(found.dag((way,)), system_of(machine))
    Path("choice.txt").write_text(Found(found.choices((way,)), found.granularity((way,)), taken).line(machine.pes))
    (result,) = df.compile(file, pes=[machine.pes], system=machine.file(), choice="choice.txt").report.results
    assert result.mapping is not None
    assert result.mapping.time_s == taken
    return taken

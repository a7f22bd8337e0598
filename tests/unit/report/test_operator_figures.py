import re
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.driver import Exploration, explore
from dfcompile.report.figures import Result
from dfcompile.report.operator_figures import OperatorGapSummary, gap_note
from dfcompile.report.summary import summarize
from dfcompile.report.tables import section_notes
from tests.asked_options import asked
from tests.onnx_text import model_from_text

PES = (3, 64)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("models") / "network.onnx"
    text = (
        "g (float[1,2,6,6] x) => (float[1,4] z) "
        "{ y = Conv(x, w) r = Relu(y) p = ReduceMean<keepdims=0>(r, axes) z = MatMul(p, v) }"
    )
    values = {"w": np.ones((3, 2, 3, 3), np.float32), "v": np.ones((3, 4), np.float32)}
    onnx.save(model_from_text(text, **values, axes=np.array([2, 3])), file)
    return file


@cache
def explored(network: Path, *rules: str) -> Exploration:
    return explore(asked(network, PES, *rules))


def gaps_of(result: Result) -> tuple[OperatorGapSummary, ...]:
    assert result.over_expansions is not None
    return result.over_expansions.operators


@pytest.mark.parametrize("rules", [["Conv=im2col,direct"], ["auto"], ["Conv=winograd"]])
def test_figures_of_all_operators_are_the_whole_machine(network: Path, rules: list[str]) -> None:
    exploration = explored(network, *rules)
    for point, result in zip(exploration.points, summarize(exploration).results, strict=True):
        gaps = gaps_of(result)
        work = {gap.operator: gap.least_work_cycles + gap.more_work_cycles for gap in gaps}
        dag = point.variant.dag

        assert sum(gap.least_work_cycles + gap.gap_cycles for gap in gaps) == (
            result.pes * (result.schedule.makespan_cycles or 0)
        )
        assert all(gap.more_work_cycles >= 0 for gap in gaps)
        for operator, cycles in work.items():
            own = [dag.scopes[scope].origin == operator for scope in dag.node_scope.tolist()]
            assert cycles == dag.work[own].sum()


def test_ideal_is_the_bound_of_the_automatic_choice(network: Path) -> None:
    for result in summarize(explored(network, "auto")).results:
        assert result.over_expansions is not None

        least = sum(gap.least_work_cycles for gap in gaps_of(result))
        assert -(-least // result.pes) == result.over_expansions.lower_bound_cycles


@pytest.mark.parametrize("rules", [["Conv=im2col,direct"], []])
def test_sentence_adds_up(network: Path, rules: list[str]) -> None:
    report = summarize(explored(network, *rules))
    notes = [note for note in section_notes(report, "bounds") if "above the ideal" in note]

    assert len(notes) == 2
    for note in notes:
        head, _, operators = note.partition(": ")
        above, makespan, ideal = map(number, re.search(r"(\S+) of (\S+) cycles .* of (\S+)$", head).groups())  # type: ignore[union-attr]
        parts = re.sub(r" \([^)]*\)", "", operators).split(", ")

        assert above + ideal == makespan
        assert sum(number(part.split()[-1]) for part in parts) == above


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_sentence_names_the_worst_and_why() -> None:
    gaps = (
        OperatorGapSummary("a", 40, 0, 0, 2),
        OperatorGapSummary("b", 100, 8, 12, 20),
        OperatorGapSummary("c", 0, 4, 0, 0),
        OperatorGapSummary("d", 10, 0, 2, 0),
    )

    assert gap_note("2 PEs", 2, 99, gaps) == (
        "on 2 PEs 24 of 99 cycles are above the ideal of 75: b 20 (idle PEs 10, waiting 6, more work 4), "
        "c 2 (more work 2), a 1 (idle PEs 1), 1 other 1"
    )


def test_nothing_is_named_where_nothing_is_above_the_ideal() -> None:
    assert gap_note("1 PEs", 1, 9, (OperatorGapSummary("a", 9, 0, 0, 0),)) == (
        "on 1 PEs 0 of 9 cycles are above the ideal of 9"
    )
